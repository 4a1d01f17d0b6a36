{{- define "oda.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "oda.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "oda.labels" -}}
{{ include "oda.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end -}}

{{- define "oda.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "oda.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "oda.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default (.Chart.AppVersion | replace "+" ".")) -}}
{{- end -}}
{{- end -}}

{{- define "oda.scheme" -}}
{{- if .Values.tls.secret -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* What the schema of the values cannot say in a sentence. */}}
{{- define "oda.check" -}}
{{- $callers := .Values.callers -}}
{{- if eq .Values.database.engine "embedded" -}}
  {{- if gt (int .Values.replicas) 1 -}}
    {{- fail "more than one replica needs database.engine=postgres: the embedded engine is a file that one pod at a time has open" -}}
  {{- end -}}
  {{- if .Values.autoscaling.enabled -}}
    {{- fail "autoscaling needs database.engine=postgres: the embedded engine is a file that one pod at a time has open" -}}
  {{- end -}}
{{- else if not .Values.database.postgres.secret -}}
  {{- fail "database.postgres.secret is missing: name an existing secret whose key database.postgres.key has postgres://USER:PASSWORD@HOST/NAME" -}}
{{- end -}}
{{- if not (or $callers.tokens.secret $callers.trustProxy $callers.oidc.issuer $callers.insecure) -}}
  {{- fail "the archive has no way to know who is calling: set callers.tokens.secret, callers.oidc.issuer or callers.trustProxy; or callers.insecure=true, and everybody who reaches it may read and write" -}}
{{- end -}}
{{- if and $callers.oidc.issuer (not $callers.oidc.audience) -}}
  {{- fail "callers.oidc.issuer needs callers.oidc.audience, the audience of the tokens for this archive" -}}
{{- end -}}
{{- if and (not $callers.oidc.issuer) (or $callers.oidc.audience $callers.oidc.rolesClaim $callers.oidc.clientId) -}}
  {{- fail "callers.oidc needs an issuer, the address of the provider" -}}
{{- end -}}
{{- if and $callers.oidc.clientId (not $callers.oidc.publicUrl) -}}
  {{- fail "callers.oidc.clientId needs callers.oidc.publicUrl, the address to which the provider sends people back" -}}
{{- end -}}
{{- if and $callers.oidc.clientSecret.secret (not $callers.oidc.clientId) -}}
  {{- fail "callers.oidc.clientSecret needs callers.oidc.clientId, the client that the secret is of" -}}
{{- end -}}
{{- $several := and (eq .Values.database.engine "postgres") (or .Values.autoscaling.enabled (ne (int .Values.replicas) 1)) -}}
{{- if and $callers.oidc.clientId $several (not $callers.oidc.sessionKey.secret) -}}
  {{- fail "callers.oidc.sessionKey.secret is missing: people who sign in at one pod are strangers to the others without a key that all share; name an existing secret whose key callers.oidc.sessionKey.key has 32 bytes or more" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
  {{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
  {{- fail "ingress.host is missing: the name under which browsers find the archive" -}}
{{- end -}}
{{- end -}}

{{/* The pods of both engines. */}}
{{- define "oda.pod" -}}
{{- $callers := .Values.callers -}}
{{- $embedded := eq .Values.database.engine "embedded" -}}
metadata:
  labels:
    {{- include "oda.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "oda.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Running requests finish within 10 seconds.
  terminationGracePeriodSeconds: 20
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: oda
      image: {{ include "oda.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --listen=:8080
        {{- if $embedded }}
        - --db=sqlite:/var/lib/oda/archive.db
        {{- end }}
        - --log-format={{ .Values.log.format }}
        - --log-level={{ .Values.log.level }}
        {{- with .Values.basePath }}
        - {{ printf "--base-path=%s" . | quote }}
        {{- end }}
        {{- with .Values.skuidUrl }}
        - {{ printf "--skuid-url=%s" . | quote }}
        {{- end }}
        {{- if .Values.tls.secret }}
        - --tls-cert=/etc/oda/tls/tls.crt
        - --tls-key=/etc/oda/tls/tls.key
        {{- end }}
        {{- if $callers.tokens.secret }}
        - {{ printf "--tokens=/etc/oda/tokens/%s" $callers.tokens.key | quote }}
        {{- end }}
        {{- with $callers.trustProxy }}
        - {{ printf "--trust-proxy=%s" (join "," .) | quote }}
        {{- end }}
        {{- with $callers.oidc.issuer }}
        - {{ printf "--oidc-issuer=%s" . | quote }}
        {{- end }}
        {{- with $callers.oidc.audience }}
        - {{ printf "--oidc-audience=%s" . | quote }}
        {{- end }}
        {{- with $callers.oidc.rolesClaim }}
        - {{ printf "--oidc-roles=%s" . | quote }}
        {{- end }}
        {{- with $callers.oidc.clientId }}
        - {{ printf "--oidc-client-id=%s" . | quote }}
        {{- end }}
        {{- with $callers.oidc.publicUrl }}
        - {{ printf "--public-url=%s" . | quote }}
        {{- end }}
        {{- if $callers.oidc.clientSecret.secret }}
        - {{ printf "--oidc-client-secret-file=/etc/oda/oidc/%s" $callers.oidc.clientSecret.key | quote }}
        {{- end }}
        {{- if $callers.oidc.sessionKey.secret }}
        - {{ printf "--session-key-file=/etc/oda/session/%s" $callers.oidc.sessionKey.key | quote }}
        {{- end }}
        {{- if $callers.insecure }}
        - --insecure
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      {{- if or (not $embedded) .Values.extraEnv }}
      env:
        {{- if not $embedded }}
        - name: ODA_DB
          valueFrom:
            secretKeyRef:
              name: {{ .Values.database.postgres.secret }}
              key: {{ .Values.database.postgres.key }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      ports:
        - name: {{ include "oda.scheme" . }}
          containerPort: 8080
      startupProbe:
        httpGet: {path: /livez, port: 8080, scheme: {{ include "oda.scheme" . | upper }}}
        {{- toYaml .Values.probes.startup | nindent 8 }}
      livenessProbe:
        httpGet: {path: /livez, port: 8080, scheme: {{ include "oda.scheme" . | upper }}}
        {{- toYaml .Values.probes.liveness | nindent 8 }}
      readinessProbe:
        httpGet: {path: /readyz, port: 8080, scheme: {{ include "oda.scheme" . | upper }}}
        {{- toYaml .Values.probes.readiness | nindent 8 }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- if $embedded }}
        - name: data
          mountPath: /var/lib/oda
        {{- end }}
        {{- if .Values.tls.secret }}
        - name: tls
          mountPath: /etc/oda/tls
          readOnly: true
        {{- end }}
        {{- if $callers.tokens.secret }}
        - name: tokens
          mountPath: /etc/oda/tokens
          readOnly: true
        {{- end }}
        {{- if $callers.oidc.clientSecret.secret }}
        - name: oidc
          mountPath: /etc/oda/oidc
          readOnly: true
        {{- end }}
        {{- if $callers.oidc.sessionKey.secret }}
        - name: session
          mountPath: /etc/oda/session
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if and $embedded .Values.database.embedded.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.database.embedded.existingClaim }}
    {{- end }}
    {{- if .Values.tls.secret }}
    - name: tls
      secret: {secretName: {{ .Values.tls.secret }}, defaultMode: 0440}
    {{- end }}
    {{- if $callers.tokens.secret }}
    - name: tokens
      secret: {secretName: {{ $callers.tokens.secret }}, defaultMode: 0440}
    {{- end }}
    {{- if $callers.oidc.clientSecret.secret }}
    - name: oidc
      secret: {secretName: {{ $callers.oidc.clientSecret.secret }}, defaultMode: 0440}
    {{- end }}
    {{- if $callers.oidc.sessionKey.secret }}
    - name: session
      secret: {secretName: {{ $callers.oidc.sessionKey.secret }}, defaultMode: 0440}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not $embedded }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "oda.selector" . | nindent 10 }}
  {{- end }}
{{- end -}}
