// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/author.h"
#include "core/run/journal.h"

#include <functional>
#include <string_view>

namespace klineage::run {

/// What a watcher hears, in order, on the thread of the run.
struct Watcher {
    std::function<void(const std::string &what)> begins;  ///< "asking for step 4", "gating candidate 3f2a…"
    std::function<void(std::string_view text)> replyText; ///< as it streams
    std::function<void(const std::string &)>
        notice; ///< that a request is asked again, and why; else begins hears it
    std::function<void(const gate::GateProgress &)> gateProgress;
    std::function<void(const llm::Ledger &)> spent; ///< after every exchange
    std::function<void(const StepRecord &)> stepped;
};

/// Everything that a procedure (materialize, deoptimize, lift, admit) works with. None owned.
struct Context {
    std::filesystem::path workspace; ///< the folder with workloads/ and skills/
    Journal &journal;
    llm::Author &author;
    GateFunction gate;
    std::stop_token stop;
    Watcher watcher;
};

[[nodiscard]] Result<Ending> materialize(Context &context);
[[nodiscard]] Result<Ending> deoptimize(Context &context);
[[nodiscard]] Result<Ending> lift(Context &context);
[[nodiscard]] Result<Ending> admit(Context &context);

/// What the run's settings say, to its end: calls the procedure and writes into the journal how it ended, an Error too.
[[nodiscard]] Result<Ending> runProcedure(Context &context);

} // namespace klineage::run
