{{/* Fails if a node could be of two groups, or of none: a group without values has the one of its name. (root) */}}
{{- define "enipool.groups" -}}
{{- $groups := dig "nodeGroups" "groups" dict .Values.AsMap }}{{- $of := dict }}
{{- if and $groups (not .Values.nodeGroups.label) }}{{ fail "nodeGroups.label: name the label of nodes whose values are the groups" }}{{ end }}
{{- range $name := keys $groups | sortAlpha }}
{{-   range $value := include "enipool.values" (list $ $name) | fromJsonArray }}
{{-     with get $of $value }}{{ fail (printf "nodeGroups.groups.%s: nodes with the value %s are of the group %s already" $name $value .) }}{{ end }}
{{-     $_ := set $of $value $name }}
{{-   end }}
{{- end }}
{{- end }}

{{/* The values of the label on a group's nodes, and with "" for a name those of all groups. (list root name) */}}
{{- define "enipool.values" -}}
{{- $groups := dig "nodeGroups" "groups" dict (index . 0).Values.AsMap }}{{- $values := list }}
{{- range $name := keys $groups | sortAlpha }}
{{-   if has (index $ 1) (list "" $name) }}{{ $values = concat $values ((get $groups $name).values | default (list $name)) }}{{ end }}
{{- end }}
{{- toJson $values }}
{{- end }}

{{/* What agent says, with each key that a group names in place of it: of sections key by key. (list root name), where "" is no group */}}
{{- define "enipool.agent" -}}
{{- $root := index . 0 }}{{- $agent := deepCopy $root.Values.agent }}
{{- with get (dig "nodeGroups" "groups" dict $root.Values.AsMap) (index . 1) }}
{{-   range $key, $value := .agent }}
{{-     if kindIs "map" $value }}
{{-       $section := deepCopy (get $agent $key | default dict) }}
{{-       range $key, $value := $value }}{{ $_ := set $section $key $value }}{{ end }}
{{-       $_ := set $agent $key $section }}
{{-     else }}{{ $_ := set $agent $key $value }}
{{-     end }}
{{-   end }}
{{- end }}
{{- toJson $agent }}
{{- end }}

{{/* Has a DaemonSet be that of a group, or of all nodes of none: its name, labels, nodes and agent.yaml. (list root name daemonset) */}}
{{- define "enipool.group" -}}
{{- $root := index . 0 }}{{- $name := index . 1 }}{{- $set := index . 2 }}{{- $pod := $set.spec.template.spec }}
{{- $values := include "enipool.values" (list $root $name) | fromJsonArray }}
{{- if $name }}
{{-   $label := dict "enipool.io/node-group" $name }}
{{-   $_ := set $set.metadata "name" (printf "%s-%s" $set.metadata.name $name) }}
{{-   range list $set.metadata.labels $set.spec.selector.matchLabels $set.spec.template.metadata.labels }}{{ $_ := merge . $label }}{{ end }}
{{-   range $pod.volumes }}
{{-     if eq .name "config" }}
{{-       $file := printf "agent-%s.yaml" $name }}
{{-       $_ := set .configMap "items" (list (dict "key" "10-enipool.conflist" "path" "10-enipool.conflist") (dict "key" $file "path" "agent.yaml")) }}
{{-     end }}
{{-   end }}
{{- end }}
{{- if $values }}
{{-   $term := index $pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms 0 }}
{{-   $rule := dict "key" $root.Values.nodeGroups.label "operator" (ternary "In" "NotIn" (ne $name "")) "values" $values }}
{{-   $_ := set $term "matchExpressions" (append $term.matchExpressions $rule) }}
{{- end }}
{{- end }}
