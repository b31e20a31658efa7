{{/* The objects of a file of conf/kubernetes, as JSON: in the namespace of the release, with the label that kustomize gives
them. (list $ "base/account.yaml") */}}
{{- define "enipool.objects" -}}
{{- $root := index . 0 }}{{- $file := index . 1 }}{{- $objects := list }}
{{- $text := $root.Files.Get (printf "files/%s" $file) | required (printf "the chart lacks files/%s: it is a link to conf/kubernetes; package the chart where links work" $file) }}
{{- range regexSplit "(?m)^---$" $text -1 }}
{{-   $object := fromYaml (regexReplaceAll "namespace: kube-system\\b" . (printf "namespace: %s" $root.Release.Namespace)) }}
{{-   if not (hasKey $object "kind") }}{{ fail (printf "read files/%s: %v" $file $object) }}{{ end }}
{{-   $_ := set $object.metadata "labels" (merge (dict "app.kubernetes.io/part-of" "enipool") ($object.metadata.labels | default dict)) }}
{{-   $objects = append $objects $object }}
{{- end }}
{{- toJson $objects }}
{{- end }}

{{/* The same as documents. Kinds stay when the release goes: each takes all of its objects with it. They are no part of Helm's crds/, which
it never upgrades. With those of the folder crds stays what agents may read and write of them: agents without an operator look there whether
one calls. (list $ file), (list $ file annotations of the ServiceAccount) or (list $ file nil labels) */}}
{{- define "enipool.file" -}}
{{- $file := index . 1 }}{{- $accounts := dict }}{{- $labels := dict }}
{{- if gt (len .) 2 }}{{ $accounts = index . 2 | default dict }}{{ end }}
{{- if gt (len .) 3 }}{{ $labels = index . 3 }}{{ end }}
{{- range include "enipool.objects" (list (index . 0) $file) | fromJsonArray }}
{{-   $more := dict }}
{{-   if or (eq .kind "CustomResourceDefinition") (and (hasPrefix "crds/" $file) (ne $file "crds/view.yaml")) }}{{ $more = dict "helm.sh/resource-policy" "keep" }}{{ end }}
{{-   if eq .kind "ServiceAccount" }}{{ $more = $accounts }}{{ end }}
{{-   if $more }}{{ $_ := set .metadata "annotations" (merge (dict) $more (.metadata.annotations | default dict)) }}{{ end }}
{{-   $_ := set .metadata "labels" (merge .metadata.labels $labels) }}
---
{{ toYaml . }}
{{ end }}
{{- end }}

{{/* The only object of a kind in a file, as JSON. (list $ file kind) */}}
{{- define "enipool.object" -}}
{{- $kind := index . 2 }}
{{- range include "enipool.objects" (list (index . 0) (index . 1)) | fromJsonArray }}{{ if eq .kind $kind }}{{ toJson . }}{{ end }}{{ end }}
{{- end }}

{{/* A file of configuration, where pages are opened for Prometheus: by the same annotation of the Service as kustomize does it.
(list $ values file-with-the-Service) */}}
{{- define "enipool.config" -}}
{{- $root := index . 0 }}{{- $config := deepCopy (index . 1) }}
{{- if $root.Values.monitoring.enabled }}
{{-   $service := include "enipool.object" (list $root (index . 2) "Service") | fromJson }}
{{-   $config = mergeOverwrite $config (fromYaml (get $service.metadata.annotations "enipool.io/listen")) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* Fails on a Kubernetes that lacks what is asked for. (list $ ">=1.36-0" "scheduling.enabled") */}}
{{- define "enipool.needs" -}}
{{- $root := index . 0 }}{{- $least := index . 1 }}
{{- if not (semverCompare (printf ">=%s.0-0" $least) $root.Capabilities.KubeVersion.Version) }}
{{-   fail (printf "%s needs Kubernetes %s or later, and this is %s" (index . 2) $least $root.Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}

{{/* Says true where agents have what devices take. That stays with dra: false, until the key goes: agents that are told so serve the
kubelet until the last claim is gone. "true" is what YAML calls a text. (list $ agent) */}}
{{- define "enipool.devices" -}}
{{- $root := index . 0 }}{{- $dra := dig "kubernetes" "dra" nil (index . 1) | toString }}
{{- if eq $dra "true" }}
{{-   include "enipool.needs" (list $root "1.36" "agent.kubernetes.dra") }}true
{{- else if and (eq $dra "false") (semverCompare ">=1.36.0-0" $root.Capabilities.KubeVersion.Version) }}true
{{- end }}
{{- end }}
