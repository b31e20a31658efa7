package bce

import (
	"cmp"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// quotaBody is how many there may be, and how many more.
type quotaBody struct {
	Total     int `json:"totalQuantity"`
	Available int `json:"availableQuantity"`
}

func eniQuota(e *Endpoint, r *request) (effect, error) {
	id, instance := r.param("eniId"), r.param("instanceId")
	var err error
	if (id == "") == (instance == "") {
		err = invalid("one of eniId and instanceId is required")
	}
	return func(tx *sim.Tx) (any, error) {
		if e.o.NoQuota {
			return quotaBody{}, nil
		}
		used := 0
		if id != "" {
			i, err := find(tx, id)
			if err != nil {
				return nil, err
			}
			if i.Attachment == nil {
				return quotaBody{Total: e.a.Options().MaxAddresses, Available: e.a.Options().MaxAddresses - i.Slots(eni.IPv4)}, nil
			}
			instance, used = i.Attachment.Instance, i.Slots(eni.IPv4)
		}
		t, err := typeOf(tx, instance)
		if err != nil {
			return nil, err
		}
		total := t.V4
		if id == "" {
			total = t.ENIs - 1
			for _, i := range tx.Interfaces() {
				if i.At(instance) && !isOwn(i) {
					used++
				}
			}
		}
		return quotaBody{Total: total, Available: max(total-used, 0)}, nil
	}, err
}

// typeOf returns the type of an instance.
func typeOf(tx *sim.Tx, instance string) (sim.Type, error) {
	i, err := tx.Instance(instance)
	if err != nil {
		return sim.Type{}, err
	}
	return tx.Type(i.Type)
}

// kindOf is the part of a type's name before its first dot.
func kindOf(t sim.Type) string {
	kind, _, _ := strings.Cut(t.Name, ".")
	return cmp.Or(kind, "bcc")
}
