{{/* Merges a strategic patch into an object, in place, as kustomize does: lists whose elements have names by these, what is null
goes, and new elements come first. (list object patch) */}}
{{- define "enipool.merge" -}}
{{- $into := index . 0 }}
{{- $names := dict "initContainers" "name" "containers" "name" "volumes" "name" "env" "name" "volumeMounts" "mountPath" }}
{{- range $key, $value := index . 1 }}
{{-   if kindIs "invalid" $value }}{{ $_ := unset $into $key }}
{{-   else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) }}{{ include "enipool.merge" (list (get $into $key) $value) }}
{{-   else if hasKey $names $key }}
{{-     $name := get $names $key }}{{- $old := get $into $key | default list }}{{- $new := list }}
{{-     range $patch := $value }}
{{-       $found := false }}
{{-       range $old }}{{ if eq (get . $name) (get $patch $name) }}{{ $found = true }}{{ include "enipool.merge" (list . $patch) }}{{ end }}{{ end }}
{{-       if not $found }}{{ $new = append $new $patch }}{{ end }}
{{-     end }}
{{-     $_ := set $into $key (concat $new $old) }}
{{-   else }}{{ $_ := set $into $key $value }}
{{-   end }}
{{- end }}
{{- end }}

{{/* Carries out the operations of a JSON patch, of which ours only add to the end of a list. (list object operations) */}}
{{- define "enipool.add" -}}
{{- $object := index . 0 }}
{{- range index . 1 }}
{{-   $path := splitList "/" (trimPrefix "/" .path) }}
{{-   if or (ne .op "add") (ne (last $path) "-") }}{{ fail (printf "%s %s: only what adds to the end of a list is known here" .op .path) }}{{ end }}
{{-   $at := $object }}{{- $list := last (initial $path) }}
{{-   range initial (initial $path) }}{{ if kindIs "slice" $at }}{{ $at = index $at (int .) }}{{ else }}{{ $at = get $at . }}{{ end }}{{ end }}
{{-   $_ := set $at $list (append (get $at $list) .value) }}
{{- end }}
{{- end }}

{{/* Gives the pods of a DaemonSet or Deployment their image, and where they run. Its own terms of node affinity are joined to each
of those that are given: a node has to be in both. (list $ pod image values) */}}
{{- define "enipool.pod" -}}
{{- $root := index . 0 }}{{- $pod := index . 1 }}{{- $image := index . 2 }}{{- $values := index . 3 }}
{{- range concat ($pod.initContainers | default list) $pod.containers }}
{{-   $_ := set . "image" (printf "%s:%s" $image.repository ($image.tag | default $root.Chart.AppVersion)) }}
{{-   $_ := set . "imagePullPolicy" $root.Values.image.pullPolicy }}
{{- end }}
{{- if $root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" $root.Values.imagePullSecrets }}{{ end }}
{{- $_ := set $pod "nodeSelector" (merge (dict) $pod.nodeSelector $values.nodeSelector) }}
{{- with $values.env }}{{ $agent := index $pod.containers 0 }}{{ $_ := set $agent "env" (concat ($agent.env | default list) .) }}{{ end }}
{{- end }}

{{/* Affinity that is given, joined to the pod's own. (list pod affinity) */}}
{{- define "enipool.affinity" -}}
{{- $pod := index . 0 }}{{- $given := deepCopy (index . 1) }}
{{- $own := (index $pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms 0).matchExpressions }}
{{- $required := dig "nodeAffinity" "requiredDuringSchedulingIgnoredDuringExecution" "nodeSelectorTerms" list $given }}
{{- range $required }}{{ $_ := set . "matchExpressions" (concat $own (.matchExpressions | default list)) }}{{ end }}
{{- $terms := $required | default (list (dict "matchExpressions" $own)) }}
{{- $nodes := mergeOverwrite ($given.nodeAffinity | default dict) (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms)) }}
{{- $_ := set $pod "affinity" (mergeOverwrite $pod.affinity $given (dict "nodeAffinity" $nodes)) }}
{{- end }}
