// Conditional is an unmodified franz-go producer that says in a header what it expects, line by line;
// ../../conditional.py says how it is talked to. Argument: bootstrap servers.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// smallest is the least that franz-go takes as a batch's most bytes.
const smallest = 512

func main() {
	clients := map[string]*kgo.Client{}
	fmt.Println("ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		words := strings.Fields(input.Text())
		id, topic, options := words[0], words[1], map[string]string{}
		var records []*kgo.Record
		for _, word := range words[2:] {
			if name, value, found := strings.Cut(word, "="); found {
				options[name] = value
			}
		}
		for _, word := range words[2:] {
			if !strings.Contains(word, "=") {
				records = append(records, record(topic, word, options))
			}
		}
		if clients[id] == nil {
			clients[id] = client(id, options)
		}
		fmt.Println(strings.Join(send(clients[id], records), " | "))
	}
}

func client(id string, options map[string]string) *kgo.Client {
	settings := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ClientID(id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(100 * time.Millisecond),
		kgo.RecordDeliveryTimeout(20 * time.Second),
	}
	if options["batch"] == "one" {
		settings = append(settings, kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(smallest))
	}
	if options["idempotent"] != "true" {
		settings = append(settings, kgo.DisableIdempotentWrite())
	}
	made, err := kgo.NewClient(settings...)
	if err != nil {
		panic(err)
	}
	return made
}

func record(topic, word string, options map[string]string) *kgo.Record {
	made := &kgo.Record{Topic: topic}
	if options["batch"] == "one" {
		padding := kgo.RecordHeader{Key: "padding", Value: make([]byte, smallest/2)}
		made.Headers = append(made.Headers, padding)
	}
	if partition, rest, found := strings.Cut(word, "/"); found {
		made.Partition, word = int32(number(partition)), rest
	}
	value, expected, found := strings.Cut(word, "@")
	made.Value = []byte(value)
	if found {
		said := []byte(expected)
		if options["encoding"] == "bytes" {
			said = binary.BigEndian.AppendUint64(nil, uint64(number(expected)))
		}
		made.Headers = append(made.Headers, kgo.RecordHeader{Key: "expected-offset", Value: said})
	}
	return made
}

func send(client *kgo.Client, records []*kgo.Record) []string {
	told := make([]string, len(records))
	var answered sync.WaitGroup
	for at, each := range records {
		answered.Add(1)
		client.Produce(context.Background(), each, func(sent *kgo.Record, err error) {
			defer answered.Done()
			told[at] = strconv.FormatInt(sent.Offset, 10)
			if err != nil {
				told[at] = name(err)
			}
		})
	}
	answered.Wait()
	return told
}

func name(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return fmt.Sprintf("%s %d: %v", known.Message, known.Code, err)
	}
	return fmt.Sprintf("%T: %v", err, err)
}

func number(text string) int64 {
	found, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return found
}
