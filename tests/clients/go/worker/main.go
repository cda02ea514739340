// Worker is a franz-go client that does what it is told, line by line; ../../worker.py says how it is talked
// to. Argument: bootstrap servers.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const wait = 30 * time.Second

var checksum = regexp.MustCompile("crc -?[0-9a-f]+")

// Command is a line.
type Command struct {
	verb, clientID, topic, what string
	rest                        []string
	options                     map[string]string
}

func main() {
	fmt.Println("ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		words := strings.Fields(input.Text())
		command := Command{words[0], words[1], words[2], words[3], words[4:], map[string]string{}}
		for _, word := range words {
			if name, value, found := strings.Cut(word, "="); found {
				command.options[name] = value
			}
		}
		fmt.Println(strings.Join(command.carryOut(), "; "))
	}
}

func (c *Command) carryOut() []string {
	if c.verb == "produce" {
		return c.produce()
	}
	return c.read()
}

// Throttled is the longest time that the client was told to wait.
type Throttled struct{ ms atomic.Int64 }

// OnBrokerThrottle is franz-go's hook.
func (t *Throttled) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	t.ms.Store(max(t.ms.Load(), interval.Milliseconds()))
}

func (c *Command) produce() (told []string) {
	throttled := &Throttled{}
	options := append(c.common(),
		kgo.WithHooks(throttled),
		kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(c.millis("delivery_ms", 20000)),
		kgo.ProduceRequestTimeout(100*time.Millisecond),
	)
	if c.options["idempotent"] == "false" {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if c.options["acks"] == "1" {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for _, value := range strings.Split(c.what, ",") {
		record := &kgo.Record{Topic: c.topic, Value: []byte(value)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			told = append(told, name(err))
		} else {
			told = append(told, strconv.FormatInt(record.Offset, 10))
		}
	}
	if ms := throttled.ms.Load(); ms > 0 {
		told = append(told, fmt.Sprintf("throttled %d", ms))
	}
	return told
}

func (c *Command) read() (told []string) {
	options := append(c.common(),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if c.verb == "member" {
		options = append(options,
			kgo.ConsumerGroup(c.rest[0]),
			kgo.ConsumeTopics(c.topic),
			kgo.HeartbeatInterval(100*time.Millisecond),
			kgo.DisableAutoCommit(),
		)
	} else {
		start := map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}
		options = append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: start}))
	}
	if c.options["crc"] == "false" {
		options = append(options, kgo.DisableFetchCRCValidation())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	count, failures := c.number("what", c.what), 1
	if given := c.options["errors"]; given != "" {
		failures = c.number("errors", given)
	}
	for count > 0 && failures > 0 {
		fetches := client.PollRecords(ctx, 1)
		for _, each := range fetches.Errors() {
			if ctx.Err() != nil {
				return append(told, "nothing")
			}
			told = append(told, name(each.Err))
			failures--
		}
		fetches.EachRecord(func(record *kgo.Record) {
			told = append(told, string(record.Value))
			count--
		})
	}
	if c.verb == "member" && count <= 0 {
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return append(told, name(err))
		}
		told = append(told, "committed")
	}
	return told
}

func (c *Command) common() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ClientID(c.clientID),
		kgo.RequestTimeoutOverhead(c.millis("request_ms", 5000)),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.MetadataMaxAge(c.millis("refresh_ms", 300000)),
	}
}

func (c *Command) millis(name string, otherwise int) time.Duration {
	if given := c.options[name]; given != "" {
		otherwise = c.number(name, given)
	}
	return time.Duration(otherwise) * time.Millisecond
}

func (c *Command) number(name, given string) int {
	number, err := strconv.Atoi(given)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return number
}

// name is Kafka's name of an error, or what the client calls it.
func name(err error) string {
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Message
	}
	var hungUp *kgo.ErrFirstReadEOF
	if errors.As(err, &hungUp) {
		return "ErrFirstReadEOF"
	}
	return checksum.ReplaceAllString(strings.ReplaceAll(err.Error(), "\n", " "), "crc")
}
