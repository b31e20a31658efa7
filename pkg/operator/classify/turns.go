package classify

// atOnce is how many pods are patched at a time, in all.
const atOnce = 32

// turns are the pods that are to be classified. Each namespace has its turn: a webhook of one that answers no patch must not hold up the pods of all.
// A namespace may have as many patches under way as there are places left after them: half of all if no other one has any, and one more
// namespace finds a place whatever the others hold.
type turns struct {
	pods  map[string][]key // by namespace, the first to come first
	order []string         // namespaces that have some, the next first
	under map[string]int   // patches under way, by namespace
	all   int              // of all namespaces
}

func newTurns() turns { return turns{pods: map[string][]key{}, under: map[string]int{}} }

// add puts a pod at the end of its namespace's.
func (t *turns) add(k key) {
	if len(t.pods[k.namespace]) == 0 {
		t.order = append(t.order, k.namespace)
	}
	t.pods[k.namespace] = append(t.pods[k.namespace], k)
}

// next takes the next pod out, false if there is none that may be patched now.
func (t *turns) next() (k key, is bool) {
	for range t.order {
		of := t.order[0]
		t.order = t.order[1:]
		if t.under[of] >= atOnce-t.all {
			t.order = append(t.order, of)
			continue
		}
		list := t.pods[of]
		if len(list) > 1 {
			t.pods[of] = list[1:]
			t.order = append(t.order, of)
		} else {
			delete(t.pods, of)
		}
		return list[0], true
	}
	return key{}, false
}

// begin notes that a patch of a namespace's pod is under way, end that it has ended.
func (t *turns) begin(namespace string) {
	t.under[namespace]++
	t.all++
}

func (t *turns) end(namespace string) {
	t.all--
	if t.under[namespace]--; t.under[namespace] == 0 {
		delete(t.under, namespace)
	}
}
