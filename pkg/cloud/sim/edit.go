package sim

import "maps"

// Edit says what is to change of an ENI. A nil field stays as it is.
type Edit struct {
	Name, Description   *string
	Groups              []string
	NoSourceCheck       *bool
	Attachment          string // the one that DeleteOnTermination is about
	DeleteOnTermination *bool
}

// Modify changes an ENI.
func (tx *Tx) Modify(id string, edit Edit) error {
	nic, err := tx.a.findNIC(id)
	if err != nil {
		return err
	}
	at, groups := nic.Attachment, nic.Groups
	if edit.DeleteOnTermination != nil {
		if at == nil || edit.Attachment != "" && at.ID != edit.Attachment {
			return fail(NoSuchAttachment, edit.Attachment, "not of %s", id)
		}
		changed := *at
		changed.DeleteOnTermination = *edit.DeleteOnTermination
		at = &changed
	}
	if len(edit.Groups) > 0 {
		if groups, err = tx.a.groupsOf(edit.Groups); err != nil {
			return err
		}
	}
	// Nothing is changed before here, so that a refused Modify has no effect.
	nic.Attachment, nic.Groups = at, groups
	setGiven(&nic.Name, edit.Name)
	setGiven(&nic.Description, edit.Description)
	setGiven(&nic.NoSourceCheck, edit.NoSourceCheck)
	tx.a.noteChanged(nic)
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

// retag changes the tags of resources, of all or, if one of them has too many then, of none.
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
		// Reads that lag share the old map: a new one replaces it, below, when none is refused.
		changed[id] = tags
	}
	for id, tags := range changed {
		at, _ := tx.a.tagsOf(id)
		*at = tags
		if n := tx.a.byID[id]; n != nil {
			tx.a.indexTags(n)
			tx.a.noteChanged(n)
		}
	}
	return nil
}

// tagsOf returns a pointer to the tags of a resource of any kind.
func (a *Account) tagsOf(id string) (*map[string]string, error) {
	switch {
	case a.byID[id] != nil:
		return &a.byID[id].Tags, nil
	case a.vms[id] != nil:
		return &a.vms[id].Tags, nil
	case a.subnets[id] != nil:
		return &a.subnets[id].Tags, nil
	case a.groups[id] != nil:
		return &a.groups[id].Tags, nil
	case a.vpc.ID == id:
		return &a.vpc.Tags, nil
	}
	return nil, fail(NoSuchResource, id, "")
}
