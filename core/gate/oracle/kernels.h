// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage::gate::oracle {

/// The files of kernels/, as they lie there. elements.cu goes before the source of the others, which are candidate files.
extern const char *const elementsCu;
extern const char *const matmulCu;
extern const char *const attentionCu;

} // namespace klineage::gate::oracle
