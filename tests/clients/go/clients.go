// Package clients pins the Go client whose own test suite is run against fencepost.
package clients

import _ "github.com/twmb/franz-go/pkg/kgo"
