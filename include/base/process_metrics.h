/* Metrics of this process under the names that Prometheus' own clients use. Loop thread only. */
#pragma once

/* Once, when the process begins. */
void process_metrics_begin(void);
/* Measures memory and descriptors, before metrics_print(). Reads /proc, and so takes longer the more files are open:
 * some ms for 10,000. A value that cannot be read stays as it was. */
void process_metrics_measure(void);
