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

{{- /* The probes' scheme. */ -}}
{{- define "chatelaine.internalScheme" -}}
{{- if .Values.internalTls.secretName }}HTTPS{{ else }}HTTP{{ end -}}
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
{{- with .Values.tls.secretName }}
tls: {{ . }}
{{- end }}
{{- with .Values.internalTls.secretName }}
internal-tls: {{ . }}
{{- end }}
{{- with .Values.internalTls.clientCaSecretName }}
internal-client-ca: {{ . }}
{{- end }}
{{- end -}}
