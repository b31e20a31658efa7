package config

import (
	"bytes"
	"encoding/json"

	"github.com/enipool/enipool/pkg/eni"
)

// AnnotationsCapability is what a network configuration has to declare for a runtime to pass the annotations
// of pods: containerd from 1.5 on, and CRI-O.
const AnnotationsCapability = "io.kubernetes.cri.pod-annotations"

// setTopology reads which topology the pod is of. A pod whose annotation can't be read gets no address:
// one of any subnet might be what its topology forbids.
func (p *Plugin) setTopology(top fields) error {
	value := top.get("runtimeConfig")
	if !bytes.Contains(value, []byte(eni.TopologyAnnotation)) { // hardly any pod has one, and some have long annotations
		p.OfNoTopology = bytes.Contains(value, []byte(`"`+AnnotationsCapability+`"`)) // in a value its quotes would be escaped
		return nil
	}
	var runtime, annotations fields
	err := json.Unmarshal(value, &runtime)
	given := runtime.get(AnnotationsCapability)
	if err == nil && given != nil {
		err = json.Unmarshal(given, &annotations)
	}
	if err == nil {
		p.Topology, err = annotations.text(eni.TopologyAnnotation)
		p.OfNoTopology = p.Topology == "" && given != nil
	}
	if err != nil {
		return &KeyError{Key: "runtimeConfig." + AnnotationsCapability, Value: string(value), Want: "an object of strings"}
	}
	return nil
}
