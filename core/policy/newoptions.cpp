// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/newoptions.h"

#include "core/policy/policy.h"

#include <algorithm>

namespace klineage::policy {

Options newOptions(std::string_view policy)
{
    Options options{{"best", "paired"}};
    if (policy == "klineage")
        options.emplace("card_text", "index");
    if (policy == "klineage" || policy == "generated-only")
        options.emplace("moves", "own-first");
    const auto known = policyOptions(policy);
    if (std::find(known.begin(), known.end(), "prompt_bytes") != known.end())
        options.emplace("prompt_bytes", "40000");
    return options;
}

} // namespace klineage::policy
