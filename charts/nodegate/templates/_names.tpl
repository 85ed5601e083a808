{{/* Refuses values that the chart does not have, and names the nearest that it has. The README's table has every name; what is
     below a name there is left to values.schema.json. */}}
{{- define "nodegate.refuseUnknown" -}}
{{- $table := .Files.Get "README.md" | splitList "<!-- end of values -->" | first }}
{{- $known := list }}
{{- range regexFindAll "(?m)^[|] `[A-Za-z.]+`" $table -1 }}
{{- $known = append $known (trimAll "| `" .) }}
{{- end }}
{{- include "nodegate.refuseUnknownIn" (dict "path" "" "values" (omit .Values "global") "known" $known) }}
{{- end }}

{{/* The same in one section. */}}
{{- define "nodegate.refuseUnknownIn" -}}
{{- $path := .path }}
{{- $known := .known }}
{{- $siblings := list }}
{{- range $known }}
{{- if hasPrefix $path . }}
{{- $siblings = append $siblings (trimPrefix $path . | splitList "." | first) }}
{{- end }}
{{- end }}
{{- range $name, $value := .values }}
{{- if has (print $path $name) $known }}
{{- else if not (has $name $siblings) }}
{{- include "nodegate.refuse" (dict "name" $name "path" $path "siblings" (uniq $siblings) "known" $known) }}
{{- else if kindIs "map" $value }}
{{- include "nodegate.refuseUnknownIn" (dict "path" (printf "%s%s." $path $name) "values" $value "known" $known) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fails because of one name. */}}
{{- define "nodegate.refuse" -}}
{{- $path := .path }}
{{- $near := dict "name" "" "distance" (min 4 (len .name)) }}
{{- range $sibling := .siblings }}
{{- $distance := include "nodegate.distance" (list (lower $.name) (lower $sibling)) | int }}
{{- if lt $distance ($near.distance | int) }}
{{- $near = dict "name" $sibling "distance" $distance }}
{{- end }}
{{- end }}
{{- $elsewhere := join "," .known | regexFind (printf "[A-Za-z.]+[.]%s\\b" (regexQuoteMeta .name)) }}
{{- $help := printf "there are %s" (join ", " .siblings) }}
{{- if $near.name }}
{{- $help = printf "did you mean %s%s?" $path $near.name }}
{{- else if $elsewhere }}
{{- $help = printf "did you mean %s?" $elsewhere }}
{{- end }}
{{- fail (printf "there is no value %s%s: %s" $path .name $help) }}
{{- end }}

{{/* The edit distance (Levenshtein's) of two words. */}}
{{- define "nodegate.distance" -}}
{{- $other := index . 1 | splitList "" }}
{{- $row := untilStep 0 (add1 (len $other) | int) 1 }}
{{- range $i, $letter := index . 0 | splitList "" }}
{{- $next := list (add1 $i) }}
{{- range $j, $with := $other }}
{{- $replaced := add (index $row $j) (ternary 0 1 (eq $letter $with)) }}
{{- $next = append $next (min (add1 (index $row (add1 $j))) (add1 (last $next)) $replaced) }}
{{- end }}
{{- $row = $next }}
{{- end }}
{{- last $row }}
{{- end }}
