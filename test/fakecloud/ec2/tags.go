package ec2

import (
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

type tagsXML struct {
	Set  set[tagOfXML] `xml:"tagSet"`
	Next string        `xml:"nextToken,omitempty"`
}

func createTags(e *Endpoint, q *query) effect {
	ids, tags := q.list("ResourceId", ""), q.tags("Tag")
	if len(ids) == 0 || len(tags) == 0 {
		q.fail("MissingParameter", "The request must contain the parameters ResourceId and Tag")
	}
	return func(tx *sim.Tx) (any, error) { return done{true}, noResource(tx.Tag(ids, tags)) }
}

func deleteTags(e *Endpoint, q *query) effect {
	ids := q.list("ResourceId", "")
	tags := map[string]*string{}
	for i, key := range q.list("Tag", ".Key") {
		tags[key] = q.pointer(nth("Tag", i, ".Value"))
	}
	if len(ids) == 0 {
		q.fail("MissingParameter", "The request must contain the parameter ResourceId")
	}
	return func(tx *sim.Tx) (any, error) { return done{true}, noResource(tx.Untag(ids, tags)) }
}

// noResource makes an error of an id that does not exist one that fits its kind.
func noResource(err error) error {
	e, ok := err.(*sim.Error)
	if !ok || e.Reason != sim.NoSuchResource {
		return err
	}
	for _, m := range []missing{noInterface, noInstance, noSubnet, noGroup, noVPC} {
		if strings.HasPrefix(e.Object, m.prefix+"-") {
			return m.named([]string{e.Object}, func(string) bool { return false })
		}
	}
	return err
}

func describeTags(e *Endpoint, q *query) effect {
	s := q.selection(e, "", "resource-id", "resource-type", "key", "value", "tag:")
	return func(tx *sim.Tx) (out any, err error) {
		var list tagsXML
		list.Set.Items, list.Next, err = page(e, s.paging, func() ([]tagOfXML, error) { return tagsOf(tx, s), nil })
		return list, err
	}
}

// tagsOf returns all tags that the request wants.
func tagsOf(tx *sim.Tx, s selection) []tagOfXML {
	var list []tagOfXML
	add := func(id, kind string, tags map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			of := map[string]string{"resource-id": id, "resource-type": kind, "key": key, "value": tags[key]}
			if pass(s.filters, map[string]string{key: tags[key]}, func(name string) []string { return []string{of[name]} }) {
				list = append(list, tagOfXML{id, kind, key, tags[key]})
			}
		}
	}
	for _, i := range tx.Instances() {
		add(i.ID, "instance", i.Tags)
	}
	for _, i := range tx.Interfaces() {
		add(i.ID, "network-interface", i.Tags)
	}
	for _, g := range tx.Groups() {
		add(g.ID, "security-group", g.Tags)
	}
	for _, sub := range tx.Subnets() {
		add(sub.ID, "subnet", sub.Tags)
	}
	add(tx.VPC().ID, "vpc", tx.VPC().Tags)
	return list
}
