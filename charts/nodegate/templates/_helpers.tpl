{{/* A file that config/ has too, in this release's namespace. */}}
{{- define "nodegate.file" -}}
{{- .root.Files.Get .path | required (printf "the chart has no %s: type `make chart`" .path) | replace "nrr-system" .root.Release.Namespace -}}
{{- end }}

{{/* All files of a folder. */}}
{{- define "nodegate.folder" -}}
{{- range $path, $_ := .root.Files.Glob (printf "files/%s/*.yaml" .folder) }}
---
{{ include "nodegate.file" (dict "root" $.root "path" $path) }}
{{- end }}
{{- end }}

{{/* A file with further labels. */}}
{{- define "nodegate.labelled" -}}
{{- $object := include "nodegate.file" . | fromYaml }}
{{- $labels := merge (dict) .labels ($object.metadata.labels | default dict) }}
{{- $_ := set $object.metadata "labels" $labels }}
{{- $object | toYaml }}
{{- end }}

{{/* The Secret with the webhook's certificate; empty where Nodegate makes it. */}}
{{- define "nodegate.webhookSecret" -}}
{{- if .Values.webhook.enabled -}}
{{- if eq .Values.webhook.certificate "cert-manager" }}nrr-webhook-cert-manager{{ end }}
{{- if eq .Values.webhook.certificate "secret" }}{{ .Values.webhook.secretName }}{{ end }}
{{- end -}}
{{- end }}

{{/* A list of strings in CEL, as policies have it; the schema leaves nothing in them that would have to be escaped. */}}
{{- define "nodegate.celList" -}}
[{{- range $index, $text := . }}{{ if $index }}, {{ end }}'{{ $text }}'{{- end }}]
{{- end }}
