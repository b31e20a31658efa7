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
	n, err := a.addInstance(i, Create{AddressRequest: AddressRequest{CountV6: i.V6}})
	if err != nil {
		return Interface{}, fmt.Errorf("add instance %s: %w", i.ID, err)
	}
	return n.Interface, nil
}

// addInstance starts an instance whose primary ENI is as own describes it.
func (a *Account) addInstance(instance Instance, own Create) (*nic, error) {
	instance.Node = cmp.Or(instance.Node, instance.ID)
	instance.Tags, instance.Launched = maps.Clone(instance.Tags), a.now.Round(0).UTC()
	_, known := a.types[instance.Type]
	switch {
	case instance.ID == "" || a.vms[instance.ID] != nil:
		return nil, errors.New("it needs an ID that no other has")
	case !known:
		return nil, fail(NoSuchType, instance.Type, "")
	}
	own.Subnet, own.Groups = instance.Subnet, instance.Groups
	nic, err := a.newNIC(own)
	if err != nil {
		return nil, err
	}
	nic.Status, nic.Attachment = InUse, &Attachment{ID: a.newID("eni-attach"), Instance: instance.ID, Status: Attached,
		Time: instance.Launched, DeleteOnTermination: true}
	m := &vm{Instance: instance}
	a.vms[instance.ID] = m
	if err := a.bootNode(m, nic); err != nil {
		delete(a.vms, instance.ID)
		a.releaseAddresses(nic)
		return nil, err
	}
	a.takePlace(m, nic)
	a.addNIC(nic)
	nic.seen.fromStart() // no describe is so old that an instance lacks its primary ENI
	return nic, nil
}

// Stop stops an instance, or starts it again. It keeps its ENIs.
func (a *Account) Stop(id string, stopped bool) error {
	a.lock()
	defer a.mu.Unlock()
	m := a.vms[id]
	if m == nil || m.Terminated {
		return fail(NoSuchInstance, id, "")
	}
	m.Stopped = stopped
	return nil
}

// Resize gives an instance another type, as after a stop. It keeps its ENIs.
func (a *Account) Resize(id, name string) error {
	a.lock()
	defer a.mu.Unlock()
	m := a.vms[id]
	if m == nil || m.Terminated {
		return fail(NoSuchInstance, id, "")
	}
	if _, known := a.types[name]; !known {
		return fail(NoSuchType, name, "")
	}
	m.Type = name
	return nil
}

// Terminate ends an instance. Its ENIs with DeleteOnTermination are deleted, the others are
// available.
func (a *Account) Terminate(id string) error {
	a.lock()
	defer a.mu.Unlock()
	m := a.vms[id]
	if m == nil || m.Terminated {
		return fail(NoSuchInstance, id, "")
	}
	m.Terminated = true
	for _, n := range append([]*nic(nil), m.nics...) {
		del := n.Attachment.DeleteOnTermination
		if err := a.detachNow(n); err != nil {
			return err
		}
		if del {
			a.removeNIC(n)
		}
	}
	return nil
}
