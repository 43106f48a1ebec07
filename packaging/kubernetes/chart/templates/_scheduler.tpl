{{- define "drover.schedulerName" -}}
{{- printf "%s-scheduler" (include "drover.fullname" . | trunc 53 | trimSuffix "-") -}}
{{- end -}}

{{- define "drover.schedulerSelector" -}}
app.kubernetes.io/name: {{ include "drover.name" . }}-scheduler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* All that decides where pods go. */ -}}
{{- define "drover.viewRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list]
- apiGroups: [""]
  resources: [nodes, namespaces, persistentvolumeclaims, persistentvolumes]
  verbs: [list]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, csidrivers, csistoragecapacities]
  verbs: [list]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, devicetaintrules, resourceclaims, resourceslices]
  verbs: [list]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get]
- apiGroups: [scheduling.k8s.io, scheduling.x-k8s.io, scheduling.volcano.sh, scheduling.run.ai]
  resources: [podgroups]
  verbs: [get, list]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
- apiGroups: [jobset.x-k8s.io, leaderworkerset.x-k8s.io]
  resources: [jobsets, leaderworkersets]
  verbs: [get]
- apiGroups: [kubeflow.org]
  resources: [jaxjobs, mpijobs, mxjobs, paddlejobs, pytorchjobs, tfjobs, xgboostjobs]
  verbs: [get]
- apiGroups: [drover.dev]
  resources: [queues, quotas]
  verbs: [list]
{{- end -}}

{{- define "drover.migClass" -}}
{{- eq .Values.driverName "gpu.nvidia.com" | ternary "mig.nvidia.com" (printf "mig.%s" .Values.driverName) -}}
{{- end -}}

{{- /* Of CEL: those whose claims are ours. */ -}}
{{- define "drover.deviceClasses" -}}
{{- $classes := default (list .Values.driverName (include "drover.migClass" .)) .Values.scheduler.deviceClasses -}}
{{- toJson $classes | replace "\"" "'" -}}
{{- end -}}

{{- /* Amounts, as limits and guarantees have them. */ -}}
{{- define "drover.amounts" -}}
type: object
properties:
  {{- range $what, $example := dict "gpus" "8 or \"0.5\"" "cpus" "64 or \"500m\"" "memory" "512Gi" }}
  {{ $what }}:
    description: such as {{ $example }}; not limited when absent
    x-kubernetes-int-or-string: true
    maxLength: 32
    x-kubernetes-validations:
      - rule: isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))
        message: {{ printf "%s is a quantity, such as %s" $what $example | quote }}
        reason: FieldValueInvalid
  {{- end }}
{{- end -}}

{{- define "drover.sharingStatus" -}}
type: object
properties:
  held:
    description: by pods that run, also those of its children
    type: object
    properties: {gpus: {type: string}, cpus: {type: string}, memory: {type: string}}
  borrowed:
    description: what of it goes beyond the guarantee, and may be wanted back
    type: object
    properties: {gpus: {type: string}}
  waiting:
    description: jobs; a gang is one
    type: integer
  conditions:
    description: Accepted, and Guaranteed, say in words what is wrong
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [type]
    items:
      type: object
      required: [type, status, reason, message, lastTransitionTime]
      properties:
        type: {type: string}
        status: {type: string, enum: ["True", "False", Unknown]}
        reason: {type: string}
        message: {type: string, maxLength: 32768}
        lastTransitionTime: {type: string, format: date-time}
        observedGeneration: {type: integer, format: int64}
{{- end -}}
