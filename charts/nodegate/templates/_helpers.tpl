{{/* What the objects' names begin with, in place of `nrr`. */}}
{{- define "nodegate.fullname" -}}
{{- .Values.fullnameOverride | default "nrr" -}}
{{- end }}

{{/* Manifests with this release's names and namespace. What Nodegate looks up has a fixed name. */}}
{{- define "nodegate.named" -}}
{{- $fullname := include "nodegate.fullname" .root }}
{{- $text := .text | replace "nrr-system" "@namespace@" | replace "nrr-" (printf "%s-" $fullname) }}
{{- range list "controller-manager-config" "gate-at-birth" "add-tolerations" "validating-webhook-configuration" "webhook-server-cert" }}
{{- $text = $text | replace (printf "%s-%s" $fullname .) (printf "nrr-%s" .) }}
{{- end }}
{{- $accounts := printf "((?:kind: ServiceAccount\n(?:metadata:\n)?|serviceAccount:\n) *name: |system:serviceaccount:@namespace@:)%s-controller-manager\\b" $fullname }}
{{- $text = regexReplaceAll $accounts $text (printf "${1}%s" (include "nodegate.serviceAccount" .root)) }}
{{- $text | replace "@namespace@" .root.Release.Namespace }}
{{- end }}

{{/* The controller's service account. */}}
{{- define "nodegate.serviceAccount" -}}
{{- with .Values.serviceAccount }}
{{- if .name }}{{ .name }}
{{- else if .create }}{{ include "nodegate.fullname" $ }}-controller-manager
{{- else }}{{ fail "serviceAccount.create is false: name yours in serviceAccount.name" }}
{{- end }}
{{- end }}
{{- end }}

{{/* A file that config/ points to. */}}
{{- define "nodegate.raw" -}}
{{- $text := .root.Files.Get .path | required (printf "the chart has no %s" .path) }}
{{- include "nodegate.named" (dict "root" .root "text" $text) }}
{{- end }}

{{/* The labels that Helm's conventions ask for. */}}
{{- define "nodegate.helmLabels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{/* The labels of every object. */}}
{{- define "nodegate.labels" -}}
{{- merge (include "nodegate.helmLabels" . | fromYaml) .Values.commonLabels | toYaml }}
{{- end }}

{{/* The labels of the pods. The first two select them, and are those of the Node Readiness Controller's pods. */}}
{{- define "nodegate.podLabels" -}}
{{- $selected := dict "control-plane" "controller-manager" "app.kubernetes.io/name" "nrrcontroller" }}
{{- merge $selected .Values.podLabels (include "nodegate.helmLabels" . | fromYaml) | toYaml }}
{{- end }}

{{/* Manifests with the labels of every object in place of those that kustomize's have, and without roles and bindings where
     somebody else makes them. */}}
{{- define "nodegate.common" -}}
{{- $root := .root }}
{{- range regexSplit "(?m)^---[ ]*$" .text -1 }}
{{- $object := fromYaml . }}
{{- if and $object (or $root.Values.rbac.create (not (regexMatch "Role(Binding)?$" $object.kind))) }}
{{- $own := omit ($object.metadata.labels | default dict) "control-plane" "app.kubernetes.io/name" }}
{{- $_ := set $object.metadata "labels" (merge (include "nodegate.labels" $root | fromYaml) $own) }}
---
{{ $object | toYaml }}
{{- end }}
{{- end }}
{{- end }}

{{/* A file with them. */}}
{{- define "nodegate.file" -}}
{{- include "nodegate.common" (dict "root" .root "text" (include "nodegate.raw" .)) }}
{{- end }}

{{/* All files of a folder. */}}
{{- define "nodegate.folder" -}}
{{- include "nodegate.common" (dict "root" .root "text" (include "nodegate.rawFolder" .)) }}
{{- end }}

{{/* The same as config/ renders them. */}}
{{- define "nodegate.rawFolder" -}}
{{- range $path, $_ := .root.Files.Glob (printf "files/%s/*.yaml" .folder) }}
---
{{ include "nodegate.raw" (dict "root" $.root "path" $path) }}
{{- end }}
{{- end }}

{{/* A file with further labels. */}}
{{- define "nodegate.labelled" -}}
{{- $object := include "nodegate.file" . | fromYaml }}
{{- $labels := merge (dict) .labels ($object.metadata.labels | default dict) }}
{{- $_ := set $object.metadata "labels" $labels }}
{{- $object | toYaml }}
{{- end }}

{{/* A map without its empty values. */}}
{{- define "nodegate.set" -}}
{{- $set := dict }}
{{- range $name, $value := . }}
{{- with $value }}{{ $_ := set $set $name . }}{{ end }}
{{- end }}
{{- $set | toYaml }}
{{- end }}

{{/* The Secret with the webhook's certificate; empty where Nodegate makes it. */}}
{{- define "nodegate.webhookSecret" -}}
{{- if .Values.webhook.enabled -}}
{{- if eq .Values.webhook.certificate "cert-manager" }}{{ include "nodegate.fullname" . }}-webhook-cert-manager{{ end }}
{{- if eq .Values.webhook.certificate "secret" }}{{ .Values.webhook.secretName }}{{ end }}
{{- end -}}
{{- end }}

{{/* Rules, as maps with their names: those under `rules`, and those as the Node Readiness Controller's chart has them. */}}
{{- define "nodegate.rules" -}}
{{- $rules := list }}
{{- range $name, $spec := .Values.rules }}
{{- $rules = append $rules (dict "name" $name "spec" $spec) }}
{{- end }}
{{- range .Values.nodeReadinessRules }}
{{- $rules = append $rules (dict "name" .name "spec" (omit . "name")) }}
{{- end }}
{{- dict "rules" $rules | toYaml }}
{{- end }}

{{/* The tolerations. The first that fits a taint counts: from a node that is gone the controller moves, after a minute. */}}
{{- define "nodegate.tolerations" -}}
{{- if .Values.tolerations }}
{{- toYaml .Values.tolerations }}
{{- else -}}
- key: node.kubernetes.io/unreachable
  operator: Exists
  effect: NoExecute
  tolerationSeconds: 60
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoExecute
  tolerationSeconds: 60
{{- if .Values.offKarpenterNodes }}
- operator: Exists
{{- else }}
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoSchedule
- key: node.kubernetes.io/network-unavailable
  operator: Exists
- key: node.cloudprovider.kubernetes.io/uninitialized
  operator: Exists
- key: node.kubernetes.io/memory-pressure
  operator: Exists
- key: node.kubernetes.io/disk-pressure
  operator: Exists
- key: node.kubernetes.io/pid-pressure
  operator: Exists
- key: node-role.kubernetes.io/control-plane
  operator: Exists
- key: CriticalAddonsOnly
  operator: Exists
{{- $keys := .Values.gatingTaints }}
{{- range (include "nodegate.rules" . | fromYaml).rules }}
{{- $keys = append $keys .spec.taint.key }}
{{- end }}
{{- range $keys | uniq }}
- key: {{ . }}
  operator: Exists
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The affinity, with what keeps the controller off Karpenter's nodes. */}}
{{- define "nodegate.affinity" -}}
{{- $affinity := .Values.affinity | default dict | deepCopy }}
{{- if .Values.offKarpenterNodes }}
{{- $nodes := $affinity.nodeAffinity | default dict }}
{{- $required := $nodes.requiredDuringSchedulingIgnoredDuringExecution | default dict }}
{{- $terms := list }}
{{- range $required.nodeSelectorTerms | default (list dict) }}
{{- $off := dict "key" "karpenter.sh/nodepool" "operator" "DoesNotExist" }}
{{- $terms = append $terms (set . "matchExpressions" (append (.matchExpressions | default list) $off)) }}
{{- end }}
{{- $_ := set $required "nodeSelectorTerms" $terms }}
{{- $_ := set $nodes "requiredDuringSchedulingIgnoredDuringExecution" $required }}
{{- $_ := set $affinity "nodeAffinity" $nodes }}
{{- end }}
{{- with $affinity }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* A list of strings in CEL, as policies have it; nothing is let into it that would have to be escaped. */}}
{{- define "nodegate.celList" -}}
{{- range . }}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9/])?$" .) }}
{{- fail (printf "%q is neither a key or value of a label or taint, nor a prefix or namespace" .) }}
{{- end }}
{{- end -}}
[{{- range $index, $text := . }}{{ if $index }}, {{ end }}'{{ $text }}'{{- end }}]
{{- end }}

{{/* Whether a DaemonSet is of one of these classes and a rule waits for it, in CEL, as the policy that adds tolerations has it. */}}
{{- define "nodegate.celClasses" -}}
({{ if not . }}false{{ end }}
{{- range $index, $class := . }}
{{- if $index }} || {{ end }}
{{- $namespaces := .namespaces | default (list "kube-system") }}
{{- if not (has "*" $namespaces) }}object.metadata.namespace in {{ include "nodegate.celList" $namespaces }} && {{ end }}
{{- $kinds := list }}
{{- range list "CriticalDaemonSetsScheduled" "CriticalPodsReady" "CSIDriversRegistered" "CriticalComponentsReady" }}
{{- $kinds = append $kinds (print $class.conditionPrefix .) }}
{{- end -}}
params.spec.conditions.exists(it, it.type in {{ include "nodegate.celList" $kinds }})
{{- $requirements := .selector.matchExpressions | default list }}
{{- range $key, $value := .selector.matchLabels }}
{{- $requirements = append $requirements (dict "key" $key "operator" "In" "values" (list $value)) }}
{{- end }} && [object.metadata, object.spec.template.metadata].all(it,
{{- range $index, $requirement := $requirements }}
{{- if $index }} &&{{ end }} {{ if hasPrefix "Not" .operator | or (hasPrefix "DoesNot" .operator) }}!{{ end }}(it.?labels[?
{{- include "nodegate.celList" (list .key) | trimAll "[]" }}]
{{- if hasSuffix "In" .operator }}.orValue('') in {{ include "nodegate.celList" .values }}){{ else }}.hasValue()){{ end }}
{{- end }})
{{- end }})
{{- end }}
