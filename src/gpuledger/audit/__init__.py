"""CHECK: dashboards, exporters, manifests, nodes, rates. Text in, findings out; pure."""
