// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <vector>

namespace klineage::ui {

/// A kernel of the paper's main tier on a platform, in milliseconds as printed. A method without a correct kernel has 0.
struct PaperLatency {
    QString kernel;    ///< "GEMM"
    QString platform;  ///< "SM90"
    QString device;    ///< "H100 PCIe"
    QString reference; ///< "cuBLAS"
    QString ours;      ///< workload here with the same operator, shape and type
    double klineageMs = 0;
    double adaexploreMs = 0;
    double acceloptMs = 0;
    double referenceMs = 0;
    QString audited; ///< the method whose kernel was found by an audit afterwards; empty: none
};

/// A card of the paper's case study: the factor with which it was admitted.
struct PaperCard {
    QString card;
    QString part; ///< "cumsum"
    double factor = 0;
    QString over; ///< "naive", "scalar"
};

/// What the paper's text says of a run's steps. 0: it says nothing of that.
struct PaperSteps {
    QString kernel;
    QString platform;
    QString device;
    QString policy;
    QString reference;
    QString ours;
    int valid = 0;
    double low = 0;
    double high = 0;
    int audited = 0;
    double auditedBest = 0;
    int wrappers = 0;
    int failed = 0;
};

/// The published numbers that come with the program (resources/paper/README.md).
struct Paper {
    std::vector<PaperLatency> latencies;
    std::vector<PaperCard> cards;
    std::vector<PaperSteps> steps;
};

[[nodiscard]] const Paper &paper();

} // namespace klineage::ui
