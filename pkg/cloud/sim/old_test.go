package sim

// addOld adds a node and returns it with its methods whole.
func addOld(a *Account, m Machine) (*Old, error) {
	_, err := a.AddNode(m)
	return a.Old(m.Name), err
}
