// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"
#include "tests/paths.h"

#include <QtGlobal>

#include <filesystem>
#include <string>

namespace klineage::test {

/// A workload of the gate's corpus.
inline workload::Workload corpusWorkload(const std::string &name)
{
    const auto read =
        workload::readWorkload(std::filesystem::path(sourcePath()) / "tests/gate/corpus/workloads" / name);
    if (!read)
        qFatal("%s", read.error().message.c_str());
    return *read;
}

} // namespace klineage::test
