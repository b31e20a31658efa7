package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
)

// AddGroup adds a security group.
func (a *Account) AddGroup(g Group) {
	a.lock()
	defer a.mu.Unlock()
	g.Tags = maps.Clone(g.Tags)
	a.groups[g.ID] = &g
}

// AddType makes an instance type known.
func (a *Account) AddType(types ...Type) {
	a.lock()
	defer a.mu.Unlock()
	for _, t := range types {
		a.types[t.Name] = t
	}
}

// AddInstance starts an instance with its own ENI, attached at index 0 and deleted
// with it. With a Network its node has configured that ENI.
func (a *Account) AddInstance(i Instance) (Interface, error) {
	a.lock()
	defer a.mu.Unlock()
	n, err := a.addInstance(i, Create{Wish: Wish{CountV6: i.V6}})
	if err != nil {
		return Interface{}, fmt.Errorf("add instance %s: %w", i.ID, err)
	}
	return n.Interface, nil
}

// addInstance starts an instance whose own ENI is as wished.
func (a *Account) addInstance(i Instance, own Create) (*nic, error) {
	i.Node = cmp.Or(i.Node, i.ID)
	i.Tags, i.Launched = maps.Clone(i.Tags), a.now.Round(0).UTC()
	_, known := a.types[i.Type]
	switch {
	case i.ID == "" || a.machines[i.ID] != nil:
		return nil, errors.New("it needs an ID that no other has")
	case !known:
		return nil, fail(NoSuchType, i.Type, "")
	}
	own.Subnet, own.Groups = i.Subnet, i.Groups
	n, err := a.newNIC(own)
	if err != nil {
		return nil, err
	}
	n.Status, n.Attachment = InUse, &Attachment{ID: a.id("eni-attach"), Instance: i.ID, Status: Attached,
		Time: i.Launched, DeleteOnTermination: true}
	m := &machine{Instance: i}
	a.machines[i.ID] = m
	if err := a.boot(m, n); err != nil {
		delete(a.machines, i.ID)
		a.release(n)
		return nil, err
	}
	a.takePlace(m, n)
	a.add(n)
	n.seen.fromStart() // no describe is so old that an instance has no ENI of its own
	return n, nil
}

// Stop stops an instance, or starts it again. It keeps its ENIs.
func (a *Account) Stop(id string, stopped bool) error {
	a.lock()
	defer a.mu.Unlock()
	m := a.machines[id]
	if m == nil || m.Terminated {
		return fail(NoSuchInstance, id, "")
	}
	m.Stopped = stopped
	return nil
}

// Terminate ends an instance: its ENIs are deleted where they are to be, the others
// are available.
func (a *Account) Terminate(id string) error {
	a.lock()
	defer a.mu.Unlock()
	m := a.machines[id]
	if m == nil || m.Terminated {
		return fail(NoSuchInstance, id, "")
	}
	m.Terminated = true
	for _, n := range append([]*nic(nil), m.nics...) {
		del := n.Attachment.DeleteOnTermination
		if err := a.off(n); err != nil {
			return err
		}
		if del {
			a.remove(n)
		}
	}
	return nil
}
