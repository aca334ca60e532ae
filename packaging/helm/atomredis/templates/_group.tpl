{{- /* The domain of the pods of a group, and their raft-peers. */ -}}
{{- define "atomredis.peersDomain" -}}
{{ .Release.Name }}-atomredis-peers.{{ .Release.Namespace }}.svc.{{ .Values.group.clusterDomain }}
{{- end -}}
{{- define "atomredis.peers" -}}
{{- if not (has (int .Values.replicas) (list 1 3 5)) }}{{ fail "replicas must be 1, 3 or 5" }}{{ end -}}
{{- range $i := until (int .Values.replicas) }}{{ if $i }},{{ end -}}
{{ $.Release.Name }}-atomredis-{{ $i }}.{{ include "atomredis.peersDomain" $ }}:{{ $.Values.group.port }}
{{- end -}}
{{- end -}}
