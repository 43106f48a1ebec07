{{- define "drover.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "drover.fullname" -}}
{{- $name := include "drover.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "drover.selector" -}}
app.kubernetes.io/name: {{ include "drover.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "drover.labels" -}}
{{ include "drover.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "drover.account" -}}
{{- default (ternary (include "drover.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "drover.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "drover.roles" -}}
{{- $roles := list -}}
{{- if .Values.roles.devicePlugin -}}{{- $roles = append $roles "device-plugin" -}}{{- end -}}
{{- if .Values.roles.dra -}}{{- $roles = append $roles "dra" -}}{{- end -}}
{{- if .Values.roles.sandboxes -}}{{- $roles = append $roles "sandboxes" -}}{{- end -}}
{{- join "," $roles -}}
{{- end -}}

{{- define "drover.report" -}}
{{- $told := list -}}
{{- range $what := list "labels" "conditions" "events" -}}
{{- if get $.Values.report $what -}}{{- $told = append $told $what -}}{{- end -}}
{{- end -}}
{{- default "none" (join "," $told) -}}
{{- end -}}

{{- /* Each is "true" or "". */ -}}
{{- define "drover.labelsNodes" -}}
{{- if and .Values.report.labels (not .Values.report.featureFile) -}}true{{- end -}}
{{- end -}}
{{- define "drover.followsPods" -}}
{{- if and .Values.roles.devicePlugin (include "drover.labelsNodes" .) -}}true{{- end -}}
{{- end -}}
{{- define "drover.patchesNodes" -}}
{{- if or (include "drover.labelsNodes" .) .Values.roles.sandboxes -}}true{{- end -}}
{{- end -}}
{{- define "drover.writesNodes" -}}
{{- if or (include "drover.patchesNodes" .) .Values.report.conditions -}}true{{- end -}}
{{- end -}}
{{- define "drover.needsApi" -}}
{{- if or .Values.roles.dra .Values.report.events (include "drover.writesNodes" .) -}}true{{- end -}}
{{- end -}}

{{- define "drover.affinity" -}}
{{- if .Values.affinity -}}
{{ toYaml .Values.affinity }}
{{- else if .Values.nodeFeatureDiscovery -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}
      - matchExpressions:
          - {key: feature.node.kubernetes.io/cpu-model.vendor_id, operator: In, values: [NVIDIA]}
      - matchExpressions:
          - {key: nvidia.com/gpu.present, operator: In, values: ["true"]}
{{- end -}}
{{- end -}}
