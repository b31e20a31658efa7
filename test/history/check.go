package history

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Check returns what is wrong with a history that began with a pool of which no address had
// been given out: for each address and each pod without a possible order, what led to that.
func Check(calls []Call, coolDown time.Duration) error {
	var errs []error
	t := newTimeline(calls)
	for _, addr := range addresses(calls) {
		errs = append(errs, explain("address "+addr.String(), addressModel(), t.addressSteps(addr, coolDown)))
	}
	for _, name := range pods(calls) {
		errs = append(errs, explain("pod "+name, podModel(), t.podSteps(name)))
	}
	return errors.Join(errs...)
}

// explain returns nil where there is an order of the steps that the model allows, and else
// how far the longest one gets. The search has no time limit: a history that is not decided
// is not one that is right.
func explain(of string, model porcupine.Model, ops []porcupine.Operation) error {
	if porcupine.CheckOperations(model, ops) {
		return nil
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, 0)
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	const shown = 12
	text := fmt.Sprintf("%s: no order of the %d calls is possible. The longest has %d, of which the last are", of, len(ops), len(longest))
	done := map[porcupine.Operation]int{}
	for i, op := range longest {
		done[key(op)]++
		if i >= len(longest)-shown {
			text += fmt.Sprintf("\n  %s", op.Input)
		}
	}
	return errors.New(text + "\nand none of these can follow:" + strings.Join(rest(ops, done, shown), ""))
}

// rest returns the first calls that are not in an order yet, as their lines.
func rest(ops []porcupine.Operation, done map[porcupine.Operation]int, most int) (lines []string) {
	for _, op := range ops {
		if k := key(op); done[k] > 0 {
			done[k]--
		} else if len(lines) < most {
			lines = append(lines, fmt.Sprintf("\n  %s", op.Input))
		}
	}
	return lines
}

// key is what tells an operation from others: its input can't be compared.
func key(op porcupine.Operation) porcupine.Operation {
	op.Input = fmt.Sprint(op.Input)
	return op
}
