// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/run/activerun.h"

#include <filesystem>
#include <string>
#include <vector>

/// The files in which prompts go out and replies come back when a lineage is derived again by hand, and the log of what came of them.
namespace klineage::run {

/// One try at a transition: DIR/gemm-sm90-K05.prompt.md and its like; further ones are gemm-sm90-K05.repair1.prompt.md, …
struct HandTry {
    int number = 0; ///< 0: the first
    std::filesystem::path prompt;
    std::filesystem::path reply;     ///< what the author writes
    std::filesystem::path problem;   ///< why the reply cannot be used, to be sent back
    std::filesystem::path candidate; ///< taken from the reply, for the gate
};
[[nodiscard]] HandTry handTry(const std::filesystem::path &folder, const lineage::Lineage &lineage,
                              const std::string &to, int number);

/// The whole of what an author is to read, in one text: system prompt and request.
[[nodiscard]] std::string handPrompt(const Conversation &conversation);
/// The former prompt, its reply, and what is said of it.
[[nodiscard]] std::string handRepair(const std::string &prompt, const std::string &reply,
                                     const std::string &repair);

/// A line of rederived/log.jsonl in the lineage's folder: one reply and what came of it.
struct HandLogLine {
    std::string from;
    std::string to;
    int number = 0;
    std::string category;
    std::string locus;
    std::string intent;
    std::string prompt;    ///< sha-256 of the prompt file
    std::string reply;     ///< sha-256 of the reply file
    std::string candidate; ///< sha-256 of the candidate in it
    std::string outcome;   ///< "accepted" "rejected" "stronger"
    std::string reason;
    bool isStrongerText = false; ///< the code is that of the stronger state but for comments and blanks
    std::vector<std::string> trials;
};
/// An empty list when there is no log.
[[nodiscard]] Result<std::vector<HandLogLine>> readHandLog(const std::filesystem::path &lineageDirectory);
[[nodiscard]] Status appendHandLog(const std::filesystem::path &lineageDirectory, const HandLogLine &line);

} // namespace klineage::run
