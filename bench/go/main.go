// Command kfake serves franz-go's fake cluster as a process of its own, so that
// the benchmarks can measure it from outside exactly as they measure fencepost.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// topic is one -topic NAME:PARTITIONS option.
type topic struct {
	name       string
	partitions int32
}

type topics []topic

func (ts *topics) String() string { return fmt.Sprint(*ts) }

func (ts *topics) Set(text string) error {
	name, count, ok := strings.Cut(text, ":")
	partitions, err := strconv.ParseInt(count, 10, 32)
	if !ok || err != nil || partitions < 1 {
		return fmt.Errorf("expected NAME:PARTITIONS, got %q", text)
	}
	*ts = append(*ts, topic{name, int32(partitions)})
	return nil
}

func main() {
	var seeds topics
	port := flag.Int("port", 0, "port of broker 0; broker i listens on port + i")
	brokers := flag.Int("brokers", 3, "number of brokers")
	flag.Var(&seeds, "topic", "NAME:PARTITIONS to create, its leaders in turn over the brokers")
	flag.Parse()
	if err := serve(*port, *brokers, seeds); err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
}

func serve(port, brokers int, seeds topics) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)

	ports := make([]int, brokers)
	for i := range ports {
		ports[i] = port + i
	}
	options := []kfake.Opt{kfake.NumBrokers(brokers), kfake.Ports(ports...)}
	for _, seed := range seeds {
		options = append(options, kfake.SeedTopics(seed.partitions, seed.name))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		return err
	}
	defer cluster.Close()

	// kfake places leaders at random; all of them on one broker would be another
	// benchmark, so they are spread as the other servers spread theirs.
	for _, seed := range seeds {
		for p := range seed.partitions {
			if err := cluster.MoveTopicPartition(seed.name, p, p%int32(brokers)); err != nil {
				return err
			}
		}
	}
	<-signals
	return nil
}
