{{/* The full name of the objects, without a repeated word. */}}
{{- define "s3sink.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else if hasPrefix (printf "%s-" .Release.Name) $name -}}
{{- $name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "s3sink.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The selector labels of the operator pods. Constant, since the selector of a Deployment is immutable. */}}
{{- define "s3sink.selector" -}}
app.kubernetes.io/name: {{ include "s3sink.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* The labels of every object, without the component. */}}
{{- define "s3sink.labels" -}}
app.kubernetes.io/name: {{ include "s3sink.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: s3sink
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels of an object with labels of its own, which win over commonLabels. Takes {labels, chart: the root}. */}}
{{- define "s3sink.labelsWith" -}}
{{- toYaml (mergeOverwrite (include "s3sink.labels" .chart | fromYaml) .labels) -}}
{{- end -}}

{{/* The labels of all pods of sinks. */}}
{{- define "s3sink.sinkPods" -}}
app.kubernetes.io/name: s3sink
app.kubernetes.io/managed-by: s3sink-operator
{{- end -}}

{{- define "s3sink.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "s3sink.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* An image with its digest, or else its tag. Takes {of: image, what: its key in the values, chart: the root}. */}}
{{- define "s3sink.image" -}}
{{- $repository := required (printf "%s.repository is required: the image that `docker build --target %s` makes" .what .target) .of.repository -}}
{{- if .of.digest -}}
{{- printf "%s@%s" $repository .of.digest -}}
{{- else -}}
{{- /* YAML makes a number of a tag such as 20261124. */ -}}
{{- $tag := kindIs "string" .of.tag | ternary .of.tag (printf "%d" (int64 .of.tag)) -}}
{{- printf "%s:%s" $repository (default .chart.Chart.AppVersion $tag) -}}
{{- end -}}
{{- end -}}

{{- define "s3sink.operatorImage" -}}
{{- include "s3sink.image" (dict "of" .Values.image "what" "image" "target" "operator" "chart" .) -}}
{{- end -}}

{{- define "s3sink.jobImage" -}}
{{- include "s3sink.image" (dict "of" .Values.jobImage "what" "jobImage" "target" "job" "chart" .) -}}
{{- end -}}

{{/* Fails with a message if the cluster does not have an API. */}}
{{- define "s3sink.needsPrometheus" -}}
{{- if not (.chart.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
{{- fail (printf "%s.enabled needs the Prometheus operator, and this cluster has no API monitoring.coreos.com/v1 (for helm template: --api-versions monitoring.coreos.com/v1)" .what) -}}
{{- end -}}
{{- end -}}

{{/* The permissions of the operator in the namespaces of sinks: docs/operator-architecture.md. */}}
{{- define "s3sink.operatorRules" -}}
- apiGroups: [s3sink.io]
  resources: [s3sinks]
  verbs: [get, list, watch, patch]
- apiGroups: [s3sink.io]
  resources: [s3sinks/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ .Values.driverClusterRole.name }}]
  verbs: [bind]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
{{- if eq .Values.operator.reportBy "Proxy" }}
- apiGroups: [""]
  resources: [pods/proxy]
  verbs: [get]
{{- end }}
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end -}}

{{/* The namespaces of sinks, as `matchResources` of an admission policy; empty for all. */}}
{{- define "s3sink.watchedNamespaces" -}}
{{- with .Values.watch.namespaces -}}
matchResources:
  namespaceSelector:
    matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: In
        values:
          {{- toYaml . | nindent 10 }}
{{- end -}}
{{- end -}}

{{/* The configuration file of the operator: the defaults of sinks that are set, and restrictions other than the
default ones. Empty without any. */}}
{{- define "s3sink.config" -}}
{{- $set := dict -}}
{{- range $name, $value := omit .Values.sinkDefaults "s3" -}}
{{- if $value }}{{ $_ := set $set $name $value }}{{ end -}}
{{- end -}}
{{- $s3 := dict -}}
{{- range $name, $value := .Values.sinkDefaults.s3 -}}
{{- if $value }}{{ $_ := set $s3 $name $value }}{{ end -}}
{{- end -}}
{{- if $s3 }}{{ $_ := set $set "s3" $s3 }}{{ end -}}
{{- $config := dict -}}
{{- if $set }}{{ $_ := set $config "sinkDefaults" $set }}{{ end -}}
{{- $restrictions := omit .Values.sinkRestrictions "admissionPolicy" -}}
{{- if or (not $restrictions.enabled) $restrictions.podTemplateFields $restrictions.images $restrictions.serviceAccounts -}}
{{- $_ := set $config "sinkRestrictions" $restrictions -}}
{{- end -}}
{{- if $config }}{{ toYaml $config }}{{ end -}}
{{- end -}}

{{/* "true" if the cluster assigns uids and rejects others. */}}
{{- define "s3sink.openshift" -}}
{{- if or (eq .Values.openshift "Enabled") (and (eq .Values.openshift "Auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
true
{{- end -}}
{{- end -}}

{{/* Security context of the operator pod. */}}
{{- define "s3sink.podSecurityContext" -}}
{{- if include "s3sink.openshift" . -}}
{{- toYaml (omit .Values.podSecurityContext "runAsUser" "runAsGroup" "fsGroup") -}}
{{- else -}}
{{- toYaml .Values.podSecurityContext -}}
{{- end -}}
{{- end -}}

{{/* Egress to DNS and the API server. */}}
{{- define "s3sink.basicEgress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- end -}}
