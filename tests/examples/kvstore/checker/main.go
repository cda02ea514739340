// Checks histories of the key-value store for linearizability, by porcupine.
//
// Standard input has a history a line, as JSON. For each a line is printed: its name and the
// verdict. Of the first that is not linearizable, the operations of the key that shows it follow,
// in the order of their calls. The exit code is 1 if there is such a history, or one that could not
// be decided in time, and 2 for what can't be read.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 60 * time.Second

// Operation is what a client asked, and what it was told. Return is nil if it was told nothing:
// then it may have been carried out at any time after its call, or never.
type Operation struct {
	Client   int     `json:"client"`
	Kind     string  `json:"kind"`
	Key      string  `json:"key"`
	Value    *string `json:"value"`
	Expected *string `json:"expected"`
	Call     int64   `json:"call"`
	Return   *int64  `json:"return"`
	Done     bool    `json:"done"`
	Found    *string `json:"found"`
}

// History is all that the clients of one run saw.
type History struct {
	Name       string      `json:"name"`
	Operations []Operation `json:"operations"`
}

// state is the value of one key.
type state struct {
	exists bool
	value  string
}

func stateOf(value *string) state {
	if value == nil {
		return state{}
	}
	return state{true, *value}
}

func (s state) String() string {
	if !s.exists {
		return "no value"
	}
	return fmt.Sprintf("%q", s.value)
}

// step carries an operation out: the new state, whether it was done, and the value it answers.
func step(before state, asked Operation) (after state, done bool, found state) {
	switch asked.Kind {
	case "get":
		return before, true, before
	case "put":
		return stateOf(asked.Value), true, before
	case "delete":
		return state{}, true, before
	case "append":
		after = state{true, before.value + *asked.Value}
		return after, true, after
	case "cas":
		if before != stateOf(asked.Expected) {
			return before, false, before
		}
		after = stateOf(asked.Value)
		return after, true, after
	}
	panic("unknown kind " + asked.Kind)
}

func told(operation Operation) string {
	said := fmt.Sprintf("client %d: %s %s", operation.Client, operation.Kind, operation.Key)
	if operation.Kind == "cas" {
		said += fmt.Sprintf(" from %s to", stateOf(operation.Expected))
	}
	if operation.Kind != "get" && operation.Kind != "delete" {
		said += fmt.Sprintf(" %s", stateOf(operation.Value))
	}
	if operation.Return == nil {
		return fmt.Sprintf("%6d-        %s: no answer", operation.Call, said)
	}
	verdict := "done"
	if !operation.Done {
		verdict = "refused"
	}
	times := fmt.Sprintf("%6d-%-6d", operation.Call, *operation.Return)
	return fmt.Sprintf("%s  %s: %s, %s", times, said, verdict, stateOf(operation.Found))
}

var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		asked := input.(Operation)
		after, done, found := step(before.(state), asked)
		if asked.Return == nil {
			return true, after
		}
		return done == asked.Done && found == stateOf(asked.Found), after
	},
}

// byKey splits a history: every operation is about one key, so the whole is linearizable if and
// only if each part is.
func byKey(operations []Operation) map[string][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, each := range operations {
		end := int64(math.MaxInt64)
		if each.Return != nil {
			end = *each.Return
		}
		parts[each.Key] = append(parts[each.Key], porcupine.Operation{
			ClientId: each.Client, Input: each, Call: each.Call, Return: end,
		})
	}
	return parts
}

type finding struct {
	verdict string
	part    []porcupine.Operation
}

const good = "linearizable"

func check(history History) finding {
	parts := byKey(history.Operations)
	keys := make([]string, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		switch porcupine.CheckOperationsTimeout(model, parts[key], patience) {
		case porcupine.Illegal:
			return finding{"not linearizable", parts[key]}
		case porcupine.Unknown:
			return finding{"undecided", parts[key]}
		}
	}
	return finding{verdict: good}
}

func read() []History {
	var histories []History
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var history History
		if err := json.Unmarshal(lines.Bytes(), &history); err != nil {
			fmt.Fprintln(os.Stderr, "no history:", err)
			os.Exit(2)
		}
		histories = append(histories, history)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return histories
}

func checkAll(histories []History) []finding {
	findings := make([]finding, len(histories))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for at := range next {
				findings[at] = check(histories[at])
			}
		})
	}
	for at := range histories {
		next <- at
	}
	close(next)
	workers.Wait()
	return findings
}

func main() {
	histories := read()
	findings := checkAll(histories)
	code := 0
	for at, found := range findings {
		fmt.Printf("%s: %s\n", histories[at].Name, found.verdict)
		if found.verdict == good {
			continue
		}
		if code == 0 {
			sort.SliceStable(found.part, func(i, j int) bool {
				return found.part[i].Call < found.part[j].Call
			})
			for _, operation := range found.part {
				fmt.Println("  ", told(operation.Input.(Operation)))
			}
		}
		code = 1
	}
	os.Exit(code)
}
