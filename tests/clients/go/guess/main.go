// Guess prints which release of Kafka a broker seems to be, by the versions that it tells of, as kcl's
// probe-version does. Arguments: its address, and the keys of APIs that do not count.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Unreliable has the keys that kversion leaves out by itself.
var unreliable = []int16{4, 5, 6, 7, 27, 56, 57, 58, 67, 71, 72}

func main() {
	skipped := unreliable
	for _, argument := range os.Args[2:] {
		key, err := strconv.ParseInt(argument, 10, 16)
		if err != nil {
			panic(err)
		}
		skipped = append(skipped, int16(key))
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion = "guess", "1"
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	versions := kversion.FromApiVersionsResponse(answer)
	fmt.Println(versions.VersionGuess(kversion.SkipKeys(skipped...)))
}
