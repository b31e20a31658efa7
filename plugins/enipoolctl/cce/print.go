package cce

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// document is an object as people apply it: without a status.
type document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

// print writes the objects to be made as YAML, with what is otherwise than it was in comments.
func (r result) print(out io.Writer) error {
	var b strings.Builder
	r.printHead(&b)
	for _, id := range r.subnets {
		fmt.Fprintf(&b, "---\n# Its addresses are the topologies' alone. No ENI of a node may lie in it, and it does not become Shared again.\n")
		if err := printObject(&b, document{crd.GroupVersion.String(), "Subnet", metadata{id}, crd.SubnetSpec{Use: "Exclusive"}}); err != nil {
			return err
		}
	}
	for _, i := range r.all {
		fmt.Fprintf(&b, "---\n# of %s\n", i.from)
		for _, note := range i.notes {
			fmt.Fprintf(&b, "# - %s\n", comment(note))
		}
		if len(i.constraint) > 0 {
			fmt.Fprint(&b, "# - for maxSkew and whenUnsatisfiable put this into the pods' template:\n")
			for _, line := range i.constraint {
				fmt.Fprintf(&b, "#     %s\n", line)
			}
		}
		// A type's own JSON would have an empty status, which is not for people to write.
		t := i.topology
		if err := printObject(&b, document{t.APIVersion, t.Kind, metadata{t.Name}, t.Spec}); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printHead writes what there is to do besides, and what is left out.
func (r result) printHead(b *strings.Builder) {
	fmt.Fprint(b, "# Topologies for an operator with topologies: true, from objects of CCE. Read the comments before you apply it.\n")
	for _, l := range r.left {
		fmt.Fprintf(b, "# left out: %s: %s\n", l.from, comment(l.why))
	}
	// A firewall may go by the addresses that these pods had.
	if len(r.left) > 0 {
		fmt.Fprint(b, "# Pods of what is left out get addresses of another topology that matches them, or of their node's own subnets.\n")
	}
	for _, l := range r.made {
		fmt.Fprintf(b, "# not needed: %s: %s\n", l.from, comment(l.why))
	}
	var places []string
	for _, i := range r.all {
		if !slices.Contains(places, i.namespaces) {
			places = append(places, i.namespaces)
		}
	}
	if len(places) > 0 {
		fmt.Fprint(b, "# New pods of a namespace wait for their topology only if it has the label enipool.io/topologies=enabled. Set it on:\n")
		for _, place := range places {
			fmt.Fprintf(b, "# - %s\n", place)
		}
		fmt.Fprint(b, "# Their addresses take places on ENIs of nodes, or ENIs of their own: `enipoolctl plan --file` says whether they fit, and how many places to keep.\n")
	}
}

// comment makes a text one that stays in its line.
func comment(text string) string {
	return strings.Join(strings.Fields(strings.TrimRight(text, "\n")), " ")
}

func printObject(b *strings.Builder, d document) error {
	text, err := json.Marshal(d)
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", d.Kind, d.Metadata.Name, err)
	}
	b.Write(text)
	return nil
}

// tell says what people must not miss, for those who only apply what is printed.
func (r result) tell(to io.Writer) {
	notes := 0
	for _, i := range r.all {
		notes += len(i.notes)
		if len(i.constraint) > 0 {
			notes++
		}
	}
	for _, l := range r.left {
		fmt.Fprintf(to, "left out: %s: %s\n", l.from, l.why)
	}
	fmt.Fprintf(to, "%d topologies, %d Exclusive subnets, %d left out; %d notes stand in the comments\n", len(r.all), len(r.subnets), len(r.left), notes)
}
