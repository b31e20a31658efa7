package quota

import "slices"

// row is requests in order. Most come and go near the head, where a hundred thousand that wait behind are not moved for that.
type row struct {
	all  []Request
	from int // what is before it has gone
}

func (r *row) list() []Request { return r.all[r.from:] }

func (r *row) insert(w Request) {
	list := r.list()
	at, _ := slices.BinarySearchFunc(list, w, Request.before)
	if r.from > 0 && at <= len(list)/2 {
		copy(r.all[r.from-1:], list[:at])
		r.from--
		r.all[r.from+at] = w
		return
	}
	if r.from > len(list) { // what has gone does not take room for ever
		r.all, r.from = slices.Clone(list), 0
	}
	r.all = slices.Insert(r.all, r.from+at, w)
}

func (r *row) remove(w Request) {
	list := r.list()
	at, found := slices.BinarySearchFunc(list, w, Request.before)
	switch {
	case !found:
	case at <= len(list)/2:
		copy(list[1:], list[:at])
		list[0] = Request{}
		r.from++
	default:
		r.all = slices.Delete(r.all, r.from+at, r.from+at+1)
	}
}
