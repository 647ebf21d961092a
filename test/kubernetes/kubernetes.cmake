# The Helm chart, the manifests, and what gateways in Kubernetes need to ask. Skipped without scripts/install-helm.
add_npm_test(kubernetes_chart kubernetes node --test chart.test.js platform.test.js)
add_npm_test(kubernetes_gateways kubernetes node gateways.test.js)
