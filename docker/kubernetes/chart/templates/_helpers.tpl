{{- define "chatelaine.name" -}}
{{- if contains "chatelaine" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-chatelaine" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "chatelaine.selector" -}}
app.kubernetes.io/name: chatelaine
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "chatelaine.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "chatelaine.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "chatelaine.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "chatelaine.policy" -}}
{{- if .Values.policy -}}
{{- toPrettyJson .Values.policy -}}
{{- else -}}
{{- .Files.Get "files/policy.json" -}}
{{- end -}}
{{- end -}}

{{- /* Secrets of the listeners' certificates: named, made by the chart, or none (empty). */ -}}
{{- define "chatelaine.tlsSecret" -}}
{{- include "chatelaine.named" (list . .Values.tls.secretName "tls") -}}
{{- end -}}
{{- define "chatelaine.internalTlsSecret" -}}
{{- include "chatelaine.named" (list . .Values.internalTls.secretName "internal-tls") -}}
{{- end -}}
{{- define "chatelaine.clientCaSecret" -}}
{{- include "chatelaine.named" (list . .Values.internalTls.clientCaSecretName "client-ca") -}}
{{- end -}}
{{- define "chatelaine.named" -}}
{{- $root := index . 0 -}}
{{- if index . 1 -}}
{{- index . 1 -}}
{{- else if ne $root.Values.certificates.from "none" -}}
{{- include "chatelaine.name" $root }}-{{ index . 2 -}}
{{- end -}}
{{- end -}}

{{- /* The certificates that the chart makes, by the end of their Secret's name: the CA, and the names that they hold. */ -}}
{{- define "chatelaine.certificates" -}}
{{- $name := include "chatelaine.name" . -}}
{{- $ns := .Release.Namespace -}}
{{- if not .Values.tls.secretName }}
tls: {ca: server, names: [{{ include "chatelaine.hosts" (list $name $ns) }}]}
{{- end }}
{{- if not .Values.internalTls.secretName }}
internal-tls: {ca: server, names: [{{ include "chatelaine.hosts" (list (printf "%s-internal" $name) $ns) }}]}
{{- end }}
{{- if not .Values.internalTls.clientCaSecretName }}
gateway-tls: {ca: client, names: [gateway.{{ $name }}.internal]}
prometheus-tls: {ca: client, names: [prometheus.{{ $name }}.internal]}
{{- end }}
{{- end -}}
{{- define "chatelaine.hosts" -}}
{{- $service := index . 0 }}{{ $ns := index . 1 -}}
{{ $service }}, {{ $service }}.{{ $ns }}, {{ $service }}.{{ $ns }}.svc, {{ $service }}.{{ $ns }}.svc.cluster.local
{{- end -}}

{{- /* The probes' scheme. */ -}}
{{- define "chatelaine.internalScheme" -}}
{{- if include "chatelaine.internalTlsSecret" . }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "chatelaine.hasLogs" -}}
{{- if or .Values.logs.audit .Values.logs.revocations }}yes{{ end -}}
{{- end -}}
{{- define "chatelaine.claimsVolume" -}}
{{- if and (include "chatelaine.hasLogs" .) (eq .Values.logs.volume.kind "claim") }}yes{{ end -}}
{{- end -}}

{{- /* The containers that print the logs: their names and the files. */ -}}
{{- define "chatelaine.printed" -}}
{{- if .Values.logs.toStdout }}
audit-log: audit.log
{{- if .Values.logs.revocations }}
revocation-log: revocations
{{- end }}
{{- end }}
{{- end -}}

{{- /* Numbers in values are floating-point numbers, which would print as 1.00663296e+08. */ -}}
{{- define "chatelaine.value" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}

{{- /* The Secrets that a node reads, by the name of their volume and folder. */ -}}
{{- define "chatelaine.secrets" -}}
master-key: {{ .Values.masterKey.secretName }}
redis: {{ .Values.redis.secretName }}
{{- with .Values.redis.caSecretName }}
redis-ca: {{ . }}
{{- end }}
{{- with .Values.redis.clientSecretName }}
redis-client: {{ . }}
{{- end }}
{{- with include "chatelaine.tlsSecret" . }}
tls: {{ . }}
{{- end }}
{{- with include "chatelaine.internalTlsSecret" . }}
internal-tls: {{ . }}
{{- end }}
{{- with include "chatelaine.clientCaSecret" . }}
internal-client-ca: {{ . }}
{{- end }}
{{- end -}}

{{- /* Of every container. */ -}}
{{- define "chatelaine.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Containers of the values: each is shut in like the node, except for what it says itself. */ -}}
{{- define "chatelaine.containers" -}}
{{- range . }}
{{- $security := include "chatelaine.containerSecurity" nil | fromYaml }}
{{- range $name, $value := .securityContext }}{{ $_ := set $security $name $value }}{{ end }}
- {{ set (deepCopy .) "securityContext" $security | toYaml | nindent 2 | trim }}
{{- end }}
{{- end -}}
