package engine

// Remembers lists what the Node keeps of an ENI, by what it keeps.
func (n *Node) Remembers(id string) (kept []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.memory
	keep := func(what string, is bool) {
		if is {
			kept = append(kept, what)
		}
	}
	has := func(what string, in map[string]seenENI) { _, is := in[id]; keep(what, is) }
	has("seen", m.seen)
	has("ready", m.ready)
	keep("deeds", m.deeds[id] != nil)
	keep("primary6", m.primary6[id].IsValid())
	keep("mine", m.mine[id])
	keep("mark", m.marks[id].Token != "")
	keep("bound", m.bound[id] != "")
	keep("token", m.tokens[id] != "")
	for _, at := range m.occupied {
		keep("index", at == id)
	}
	return kept
}
