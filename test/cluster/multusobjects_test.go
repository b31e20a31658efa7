package cluster

// attachments are what Multus reads of the API server: the kind, the right to see it and to write pods' status, by the rights of kubelets here, and
// networks. The one of enipool is that of its file; two more are of the reference plugins, one for eth0 and one for net1.
const attachments = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition, shortNames: [net-attach-def]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {config: {type: string}}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: multus}
rules:
- {apiGroups: [k8s.cni.cncf.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [pods, pods/status], verbs: [get, update]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: multus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: multus}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
`

const networks = `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: others, namespace: kube-system}
spec:
  config: '{"cniVersion": "1.0.0", "name": "others", "plugins": [{"type": "ptp", "ipMasq": true,
    "ipam": {"type": "host-local", "subnet": "172.30.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}'
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: side}
spec:
  config: '{"cniVersion": "1.0.0", "name": "side", "type": "ptp", "ipam": {"type": "host-local", "subnet": "172.31.0.0/24"}}'
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: enipool}
spec:
  config: '{"cniVersion": "1.0.0", "name": "enipool-second", "plugins": [{"type": "enipool", "logFile": "/var/log/enipool.log"}]}'
`

// twoNetworks is a pod with the annotations.
const twoNetworks = `apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {%s}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/busybox:1, command: [httpd, -f, -p, "80", -h, /etc]}]
`

// pinned is a web server on a node.
const pinned = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/busybox:1, command: [httpd, -f, -p, "80", -h, /etc]}]
`
