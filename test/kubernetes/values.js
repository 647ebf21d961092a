// Values that the chart is rendered with.
export const LEAST = {
    publicOrigin: 'https://console.example.org',
    masterKey: { secretName: 'chatelaine-master-key' },
    redis: { secretName: 'chatelaine-redis' },
};

/** Of the plain manifests: the chart's own certificates would be others each time. */
export const PLAIN = { ...LEAST, certificates: { from: 'cert-manager' } };

/** Nothing that the chart protects by default. */
export const BARE = {
    ...{ ...LEAST, certificates: { from: 'none' }, tls: { clearText: true }, internalTls: { clearText: true } },
    logs: { audit: false, revocations: false },
};

/** Everything that can be set. */
export const FULL = {
    image: {
        repository: 'registry.example.org/chatelaine',
        digest: `sha256:${'0123456789abcdef'.repeat(4)}`,
        pullSecrets: ['registry'],
    },
    replicas: 5,
    publicOrigin: 'https://console.example.org',
    trustedProxies: ['10.244.0.0/16', 'fd00::/8'],
    masterKey: { secretName: 'chatelaine-master-key', retired: true },
    redis: {
        ...{ secretName: 'chatelaine-redis', sentinel: true, sentinelAuth: true, minReplicas: 1 },
        ...{ caSecretName: 'redis-ca', clientSecretName: 'redis-client' },
    },
    certificates: { from: 'none' },
    tls: { secretName: 'chatelaine-tls' },
    internalTls: { secretName: 'chatelaine-internal-tls', clientCaSecretName: 'gateways-ca' },
    policy: { version: 1, routes: [{ path: '/v1/x', read: 'x:read' }] },
    settings: { 'cache-bytes': 268435456, 'lease-ms': '500ms', 'proxy-protocol': true, 'check-status': 'strict401' },
    drainMs: 12500,
    logs: { audit: true, revocations: true, volume: { size: '100Gi', storageClassName: 'local' } },
    services: {
        public: { type: 'LoadBalancer', port: 443, annotations: { 'example.org/a': 'b' } },
        internal: { port: 8444, annotations: { 'example.org/a': 'b' } },
    },
    networkPolicy: {
        clients: [{ ipBlock: { cidr: '0.0.0.0/0' } }],
        redis: [{ ipBlock: { cidr: '10.1.0.0/24' } }],
        redisPorts: [6380],
    },
    podDisruptionBudget: { maxUnavailable: '40%' },
    serviceMonitor: {
        ...{ enabled: true, labels: { release: 'prometheus' } },
        tlsConfig: { serverName: 'chatelaine-internal.chatelaine.svc', ca: { secret: { name: 'ca', key: 'ca.crt' } } },
    },
    prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
    podAnnotations: { 'example.org/a': 'b' },
    podLabels: { team: 'records' },
    nodeSelector: { 'kubernetes.io/arch': 'amd64' },
    tolerations: [{ key: 'records', operator: 'Exists' }],
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
    priorityClassName: 'high',
};

/** A cluster that chooses the Pod's user and groups; with more in the Pod. */
export const OPENSHIFT = {
    ...LEAST,
    podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null },
    extraVolumes: [{ name: 'grants', configMap: { name: 'grants' } }],
    extraVolumeMounts: [{ name: 'grants', mountPath: '/etc/chatelaine/grants', readOnly: true }],
    extraEnv: [{ name: 'SSL_CERT_DIR', value: '/etc/chatelaine/grants' }],
    initContainers: [{ name: 'wait', image: 'registry.example.org/wait', command: ['wait'] }],
    sidecars: [
        {
            ...{ name: 'shipper', image: 'registry.example.org/shipper' },
            securityContext: { readOnlyRootFilesystem: false },
            volumeMounts: [{ name: 'logs', mountPath: '/var/log/chatelaine', readOnly: true }],
        },
    ],
    logs: { toStdout: true, volume: { kind: 'emptyDir', size: '2Gi' } },
    autoscaling: {
        ...{ enabled: true, minReplicas: 4, maxReplicas: 8, cpuPercent: 60 },
        metrics: [{ type: 'Pods', pods: { metric: { name: 'm' }, target: { type: 'AverageValue', averageValue: '100' } } }],
    },
    ingress: {
        ...{ enabled: true, className: 'internal', annotations: { 'example.org/a': 'b' } },
        tls: { secretName: 'console' },
    },
    networkPolicy: {
        dns: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'openshift-dns' } } }],
        dnsPorts: [5353],
        egress: [{ to: [{ ipBlock: { cidr: '10.2.0.0/16' } }], ports: [{ port: 3100, endPort: 3110, protocol: 'TCP' }] }],
    },
    serviceAccount: { name: 'shipper', annotations: { 'example.org/role': 'ships' } },
};

/** Values that must be refused, and what must be said. Each is merged with LEAST, whole keys replacing whole keys. */
export const BAD = [
    [{ publicOrigin: '' }, 'publicOrigin is missing'],
    [{ publicOrigin: 'console.example.org' }, 'publicOrigin'],
    [{ masterKey: {} }, 'masterKey.secretName is missing'],
    [{ redis: {} }, 'redis.secretName is missing'],
    [{ redis: { secretName: 'r', sentinel: true } }, 'redis.minReplicas must be at least 1 with redis.sentinel'],
    [{ redis: { secretName: 'r', password: 'p' } }, 'password'],
    [{ networkPolicy: { enabled: false } }, 'everybody in the cluster could try keys'],
    [{ networkPolicy: { gateways: [] } }, 'networkPolicy.gateways is empty'],
    [{ networkPolicy: { gateways: [{}] } }, 'gateways'],
    [
        { certificates: { from: 'none' }, internalTls: { clientCaSecretName: 'ca' } },
        'internalTls.secretName is missing',
    ],
    [{ certificates: { from: 'none' } }, 'Secret of type kubernetes.io/tls'],
    [{ certificates: { from: 'none' }, internalTls: { secretName: 'i' } }, 'tls.secretName is missing'],
    [{ certificates: { from: 'none' }, tls: { secretName: 't' } }, 'internalTls.secretName is missing'],
    [{ certificates: { from: 'none' }, tls: { clearText: true } }, 'internalTls.secretName is missing'],
    [{ tls: { clearText: true } }, 'tls.clearText is true, but the listener has a certificate'],
    [
        { certificates: { from: 'none' }, tls: { secretName: 't' }, internalTls: { secretName: 'i', clearText: true } },
        'internalTls.clearText is true, but the listener has a certificate',
    ],
    [{ certificates: { from: 'cert_manager' } }, 'certificates'],
    [{ revocationLog: { claimName: 'revocations' } }, 'revocationLog'],
    [{ logs: { volume: { size: 10 } } }, 'size'],
    [{ settings: { 'proxy-protocol': true } }, 'trustedProxies is empty'],
    [{ settings: { 'leese-ms': 1000 } }, 'leese-ms'],
    [{ settings: { 'unsafe-redis': true } }, 'unsafe-redis'],
    [{ replicas: 0 }, 'replicas'],
    [{ image: { digest: 'sha256:abc' } }, 'digest'],
    [{ trustedProxies: ['gateway'] }, 'trustedProxies'],
    [{ replica: 3 }, 'replica'],
    [{ logs: { audit: false, toStdout: true } }, 'logs.audit is false'],
    [{ logs: { volume: { kind: 'emptyDir' } } }, 'the logs would go with the Pod'],
    [{ logs: { volume: { kind: 'tmpfs' } } }, 'kind'],
    [{ podDisruptionBudget: { maxUnavailable: 3 } }, 'with 3 nodes, all may be away at once'],
    [{ podDisruptionBudget: { maxUnavailable: '67%' } }, 'with 3 nodes, all may be away at once'],
    [{ podDisruptionBudget: { maxUnavailable: 'one' } }, 'maxUnavailable'],
    [
        { autoscaling: { enabled: true, minReplicas: 2 }, replicas: 5, podDisruptionBudget: { maxUnavailable: 2 } },
        'with 2 nodes, all may be away at once',
    ],
    [{ autoscaling: { enabled: true, maxReplicas: 2 } }, 'less than autoscaling.minReplicas'],
    [{ autoscaling: { enabled: true, minReplicas: 1 } }, 'minReplicas'],
    [{ ingress: { enabled: true } }, 'ingress.tls.secretName is missing'],
    [{ ingress: { host: 'a.example.org' } }, 'host'],
    [{ networkPolicy: { egress: [{ ports: [{ port: 1 }] }] } }, 'to'],
    [{ networkPolicy: { egress: [{ to: [{}], ports: [{ port: 1 }] }] } }, 'egress'],
    [{ networkPolicy: { egress: [{ to: [{ podSelector: {} }] }] } }, 'ports'],
    [{ networkPolicy: { dnsPorts: [] } }, 'dnsPorts'],
    [{ extraEnv: [{ name: 'CHATELAINE_UNSAFE_REDIS', value: 'true' }] }, 'extraEnv sets CHATELAINE_UNSAFE_REDIS'],
    [{ extraEnv: [{ name: 'A', vaule: 'b' }] }, 'vaule'],
    [{ extraVolumes: [{ name: 'a' }] }, 'extraVolumes'],
    [{ extraVolumeMounts: [{ name: 'a', mountPath: 'a' }] }, 'mountPath'],
    [{ sidecars: [{ name: 'a' }] }, 'image'],
    [{ serviceAccount: { create: false } }, 'serviceAccount.name is missing'],
    [{ podSecurityContext: { runAsUser: 0 } }, 'runAsUser'],
    [{ podSecurityContext: { runAsNonRoot: false } }, 'runAsNonRoot'],
    [{ podSecurityContext: { seccompProfile: { type: 'Unconfined' } } }, 'seccompProfile'],
    [{ podSecurityContext: { seccompProfile: null } }, 'seccompProfile'],
];
