package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// attachments returns those of the pod that the runtime calls for, the first one first.
func (c *call) attachments() ([]attachment, error) {
	var all []attachment
	for _, d := range c.Delegates {
		all = append(all, attachment{Config: d})
	}
	its := map[string]string{}
	for _, a := range c.runtime(attachment{}).Args {
		its[a[0]] = a[1]
	}
	namespace := its["K8S_POD_NAMESPACE"]
	pod, err := c.get("", "pods", namespace, its["K8S_POD_NAME"])
	if err != nil {
		return nil, err
	}
	wants := pod.GetAnnotations()
	if first := wants["v1.multus-cni.io/default-network"]; first != "" {
		all[0], err = c.attachment(first, "kube-system")
	}
	for more := range strings.SplitSeq(wants["k8s.v1.cni.cncf.io/networks"], ",") {
		if more = strings.TrimSpace(more); more != "" {
			a, failed := c.attachment(more, namespace)
			all, err = append(all, a), errors.Join(err, failed)
		}
	}
	for i := range all {
		all[i].Interface = fmt.Sprintf("net%d", i)
	}
	all[0].Interface = c.args.IfName
	return all, err
}

// attachment is the one that an annotation names, as namespace/name or as name.
func (c *call) attachment(name, namespace string) (attachment, error) {
	if its, rest, ok := strings.Cut(name, "/"); ok {
		namespace, name = its, rest
	}
	object, err := c.get("k8s.cni.cncf.io", "network-attachment-definitions", namespace, name)
	if err != nil {
		return attachment{}, err
	}
	text, _, err := unstructured.NestedString(object.Object, "spec", "config")
	return attachment{Config: json.RawMessage(text)}, err
}

func (c *call) get(group, resource, namespace, name string) (*unstructured.Unstructured, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	kind := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	object, err := client.Resource(kind).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", resource, namespace, name, err)
	}
	return object, nil
}
