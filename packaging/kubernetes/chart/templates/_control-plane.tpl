{{- define "drover.controlPlaneName" -}}
{{- printf "%s-control-plane" (include "drover.fullname" . | trunc 49 | trimSuffix "-") -}}
{{- end -}}

{{- define "drover.controlPlaneSelector" -}}
app.kubernetes.io/name: {{ include "drover.name" . }}-control-plane
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* As /etc/passwd has them: the image has none. */ -}}
{{- define "drover.controlPlanePasswd" -}}
root:x:0:0:root:/:/
{{ range .Values.controlPlane.users -}}
{{ .name }}:x:{{ int .uid }}:{{ int (default .uid .gid) }}::/:/
{{ end -}}
{{- end -}}

{{- define "drover.controlPlaneGroup" -}}
{{- $members := dict -}}
{{- range $user := .Values.controlPlane.users -}}
{{- $own := toString (int (default $user.uid $user.gid)) -}}
{{- if not (hasKey $members $own) -}}{{- $_ := set $members $own list -}}{{- end -}}
{{- range $group := $user.groups -}}
{{- $id := toString (int $group) -}}
{{- $_ := set $members $id (append (default list (get $members $id)) $user.name) -}}
{{- end -}}
{{- end -}}
root:x:0:
{{ range $id, $names := $members -}}
{{- if ne $id "0" -}}
group-{{ $id }}:x:{{ $id }}:{{ join "," $names }}
{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The data of its Secret. Made once: what is there already is kept. */ -}}
{{- define "drover.controlPlaneSecret" -}}
{{- $known := lookup "v1" "Secret" .Release.Namespace (include "drover.controlPlaneName" .) -}}
{{- $known = default dict (get (default dict $known) "data") -}}
{{- $lines := get $known "credentials" | b64dec | default (printf "root:%s\n" (randAlphaNum 48)) -}}
{{- $reader := get $known "metrics" | b64dec | default (ternary (randAlphaNum 48) "" .Values.metrics.serviceMonitor.enabled) -}}
{{- if $reader -}}
{{- $line := printf "@metrics:%s\n" $reader -}}
{{- $lines = ternary $lines (printf "%s\n%s" (trimSuffix "\n" $lines) $line) (contains $line $lines) -}}
metrics: {{ $reader | b64enc }}
{{ end -}}
credentials: {{ $lines | b64enc }}
{{- end -}}
