package sim

import "maps"

// Edit is what is to change of an ENI; nil is what stays.
type Edit struct {
	Name, Description   *string
	Groups              []string
	NoSourceCheck       *bool
	Attachment          string // the one that DeleteOnTermination is about
	DeleteOnTermination *bool
}

// Modify changes an ENI.
func (tx *Tx) Modify(id string, e Edit) error {
	n, err := tx.a.nic(id)
	if err != nil {
		return err
	}
	at, groups := n.Attachment, n.Groups
	if e.DeleteOnTermination != nil {
		if at == nil || e.Attachment != "" && at.ID != e.Attachment {
			return fail(NoSuchAttachment, e.Attachment, "not of %s", id)
		}
		changed := *at
		changed.DeleteOnTermination = *e.DeleteOnTermination
		at = &changed
	}
	if len(e.Groups) > 0 {
		if groups, err = tx.a.groupsOf(e.Groups); err != nil {
			return err
		}
	}
	n.Attachment, n.Groups = at, groups
	setGiven(&n.Name, e.Name)
	setGiven(&n.Description, e.Description)
	setGiven(&n.NoSourceCheck, e.NoSourceCheck)
	tx.a.changed(n)
	return nil
}

func setGiven[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// maxTags is how many tags a resource may have.
const maxTags = 50

// Tag sets tags of resources of any kind, by their ids: of all or of none.
func (tx *Tx) Tag(ids []string, tags map[string]string) error {
	return tx.retag(ids, func(had map[string]string) { maps.Copy(had, tags) })
}

// Untag removes tags: those of tags that have the value there, or nil, whatever
// value it is; all of them where tags is empty.
func (tx *Tx) Untag(ids []string, tags map[string]*string) error {
	return tx.retag(ids, func(had map[string]string) {
		if len(tags) == 0 {
			clear(had)
		}
		for key, value := range tags {
			if value == nil || had[key] == *value {
				delete(had, key)
			}
		}
	})
}

func (tx *Tx) retag(ids []string, change func(map[string]string)) error {
	changed := map[string]map[string]string{}
	for _, id := range ids {
		at, err := tx.a.tagsOf(id)
		if err != nil {
			return err
		}
		tags := maps.Clone(*at)
		if tags == nil {
			tags = map[string]string{}
		}
		change(tags)
		if len(tags) > maxTags {
			return fail(TagLimit, id, "a resource may have %d", maxTags)
		}
		changed[id] = tags
	}
	for id, tags := range changed {
		at, _ := tx.a.tagsOf(id)
		*at = tags
		if n := tx.a.byID[id]; n != nil {
			tx.a.index(n)
			tx.a.changed(n)
		}
	}
	return nil
}

// tagsOf returns where the tags of a resource are.
func (a *Account) tagsOf(id string) (*map[string]string, error) {
	switch {
	case a.byID[id] != nil:
		return &a.byID[id].Tags, nil
	case a.machines[id] != nil:
		return &a.machines[id].Tags, nil
	case a.subnets[id] != nil:
		return &a.subnets[id].Tags, nil
	case a.groups[id] != nil:
		return &a.groups[id].Tags, nil
	case a.vpc.ID == id:
		return &a.vpc.Tags, nil
	}
	return nil, fail(NoSuchResource, id, "")
}
