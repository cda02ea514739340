// Transactor has transactional producers that do what they are told, line by line; ../../transactors.py
// says how they are talked to.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const wait = 30 * time.Second

func main() {
	producers := map[string]*kgo.Client{}
	fmt.Println("ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		if err := obey(producers, strings.Fields(input.Text())); err != nil {
			fmt.Println(name(err))
		} else {
			fmt.Println("done")
		}
	}
}

func obey(producers map[string]*kgo.Client, words []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	producer := producers[words[0]]
	switch words[1] {
	case "init":
		timeout, err := strconv.Atoi(words[4])
		if err != nil {
			return err
		}
		producer, err = kgo.NewClient(
			kgo.SeedBrokers(strings.Split(words[2], ",")...),
			kgo.TransactionalID(words[3]),
			kgo.TransactionTimeout(time.Duration(timeout)*time.Millisecond),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerLinger(0),
			kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
			kgo.MetadataMinAge(20*time.Millisecond),
		)
		if err != nil {
			return err
		}
		producers[words[0]] = producer
		_, _, err = producer.ProducerID(ctx) // it asks for one
		return err
	case "begin":
		return producer.BeginTransaction()
	case "send":
		return producer.ProduceSync(ctx, &kgo.Record{Topic: words[2], Value: []byte(words[3])}).FirstErr()
	case "commit":
		return producer.EndTransaction(ctx, kgo.TryCommit)
	case "abort":
		return producer.EndTransaction(ctx, kgo.TryAbort)
	}
	return errors.New(words[1])
}

// name is Kafka's name of an error, or what the client calls it.
func name(err error) string {
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Message
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
