# The Helm chart and the manifests. Skipped without scripts/install-helm.
add_npm_test(kubernetes_chart kubernetes node --test chart.test.js)
