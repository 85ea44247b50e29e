// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/makeprovider.h"
#include "core/run/journal.h"

namespace klineage::run {

/// The provider that the settings name. An exec command runs through `sh -c` in the workspace; manual without a desk exchanges files in
/// the run's folder `manual/`. desk and key are the window's; both may be empty, and notice too. InvalidInput for unknown keys of [author].
[[nodiscard]] Result<std::unique_ptr<llm::Provider>> makeRunProvider(
    const Settings &settings, const std::filesystem::path &workspace,
    const std::filesystem::path &runDirectory, std::shared_ptr<llm::ManualDesk> desk = {},
    llm::KeyCallback key = {}, llm::NoticeCallback notice = {});

} // namespace klineage::run
