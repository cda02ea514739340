// Reader is a franz-go consumer of partition 0 that is told what to do, line by line: "read 20" reads so
// many records. It answers each line with one. Arguments: bootstrap servers, topic, client id.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const wait = time.Minute

// Reader is a consumer and what it has fetched and not told yet.
type Reader struct {
	client  *kgo.Client
	fetched []*kgo.Record
}

func main() {
	fromStart := map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{os.Args[2]: fromStart}),
		kgo.ClientID(os.Args[3]),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	reader := Reader{client: client}
	fmt.Println("ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var count int
		fmt.Sscanf(input.Text(), "read %d", &count)
		fmt.Println(reader.read(count))
	}
}

func (r *Reader) read(count int) string {
	for len(r.fetched) < count {
		if problem := r.fetch(); problem != "" {
			return problem
		}
	}
	first, last := r.fetched[0], r.fetched[count-1]
	r.fetched = r.fetched[count:]
	return fmt.Sprintf("%s at %d to %s at %d", first.Value, first.Offset, last.Value, last.Offset)
}

func (r *Reader) fetch() string {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	fetches := r.client.PollFetches(ctx)
	r.fetched = append(r.fetched, fetches.Records()...)
	for _, each := range fetches.Errors() {
		var lost *kgo.ErrDataLoss
		if errors.As(each.Err, &lost) {
			return fmt.Sprintf("ErrDataLoss: consumed to %d, reset to %d", lost.ConsumedTo, lost.ResetTo)
		}
		return each.Err.Error()
	}
	return ""
}
