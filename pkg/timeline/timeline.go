// Package timeline keeps what happens later in the order of its times.
package timeline

import "time"

// Queue keeps values by the times at which they are due; of one time the one that was added first is first. An empty one is ready
// for use.
type Queue[T any] struct {
	heap  []entry[T] // none is due before its parent, which is at half its place
	added int
}

type entry[T any] struct {
	at     time.Duration
	serial int
	what   T
}

func (e entry[T]) isBefore(other entry[T]) bool {
	return e.at < other.at || e.at == other.at && e.serial < other.serial
}

// Add adds a value that is due at a time.
func (q *Queue[T]) Add(at time.Duration, what T) {
	q.added++
	q.heap = append(q.heap, entry[T]{at, q.added, what})
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.heap[i].isBefore(q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

// First returns the value that is due first and its time, and whether there is any.
func (q *Queue[T]) First() (at time.Duration, what T, is bool) {
	if len(q.heap) == 0 {
		return 0, what, false
	}
	return q.heap[0].at, q.heap[0].what, true
}

// DropFirst removes the value that First returns.
func (q *Queue[T]) DropFirst() {
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = entry[T]{} // what it refers to is not needed any more
	q.heap = q.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return
		}
		if right := child + 1; right < last && q.heap[right].isBefore(q.heap[child]) {
			child = right
		}
		if !q.heap[child].isBefore(q.heap[i]) {
			return
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}
