// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/code/machinecode.h"

#include "ui/machine/code/ptx.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace klineage::ui {

namespace {

constexpr std::string_view selectedReason = "selected";

/// What cannot be printed becomes '?': the text comes from outside.
std::string printable(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7f; }, '?');
    return text;
}

bool isLabel(std::string_view text)
{
    return text.ends_with(':') && text.find(' ') == std::string_view::npos;
}

void addInstruction(MachineCode &code, gate::ListedInstruction &&from)
{
    const int at = static_cast<int>(code.rows.size());
    CodeRow &row = code.rows.emplace_back();
    row.text = printable(std::move(from.text));
    if (isLabel(row.text)) {
        row.kind = CodeRow::Kind::Label;
        return;
    }
    row.line = std::max(0, from.line);
    row.samples = std::max<std::int64_t>(0, from.samples);
    row.stalls = std::move(from.stalls);
    row.opcode = classOf(code.form, opcodeOf(row.text));
    ++code.instructions;
    ++code.mix[static_cast<std::size_t>(row.opcode)];
    code.samples += row.samples;
    code.mostSamples = std::max(code.mostSamples, row.samples);
    if (row.line > 0)
        code.rowsOfLine[row.line].push_back(at);
}

void findHottest(MachineCode &code)
{
    for (std::size_t i = 0; i < code.rows.size(); ++i) {
        if (code.rows[i].samples > 0)
            code.hottest.push_back(static_cast<int>(i));
    }
    std::stable_sort(code.hottest.begin(), code.hottest.end(), [&code](int a, int b) {
        return code.rows[static_cast<std::size_t>(a)].samples
               > code.rows[static_cast<std::size_t>(b)].samples;
    });
    code.hottest.resize(std::min(code.hottest.size(), hottestCount));
}

} // namespace

std::span<const int> MachineCode::rowsOf(int line) const
{
    const auto found = rowsOfLine.find(line);
    return found == rowsOfLine.end() ? std::span<const int>() : std::span<const int>(found->second);
}

Result<MachineCode> makeMachineCode(CodeForm form, gate::Listing listing)
{
    if (listing.instructions.size() > maxCodeRows)
        return fail(ErrorCode::InvalidInput, "The machine code has more than " + std::to_string(maxCodeRows)
                                                 + " instructions, which is more than is shown.");
    MachineCode code;
    code.form = form;
    code.compiler = printable(std::move(listing.compiler));
    code.rows.reserve(listing.instructions.size() + 8);
    std::string kernel;
    for (gate::ListedInstruction &one : listing.instructions) {
        if (code.rows.empty() || one.kernel != kernel) {
            kernel = one.kernel;
            CodeRow &head = code.rows.emplace_back();
            head.kind = CodeRow::Kind::Kernel;
            head.text = printable(kernel);
        }
        addInstruction(code, std::move(one));
    }
    findHottest(code);
    return code;
}

std::pair<std::string, std::int64_t> largestStall(const CodeRow &row)
{
    std::pair<std::string, std::int64_t> most;
    for (const auto &[reason, samples] : row.stalls) {
        if (reason != selectedReason && samples > most.second)
            most = {reason, samples};
    }
    return most;
}

std::string rowsAsText(const MachineCode &code, std::span<const int> rows)
{
    std::string out;
    for (const int at : rows) {
        if (at < 0 || static_cast<std::size_t>(at) >= code.rows.size())
            continue;
        const CodeRow &row = code.rows[static_cast<std::size_t>(at)];
        char head[80] = "";
        if (row.kind == CodeRow::Kind::Instruction)
            std::snprintf(head, sizeof head, "%6s  %8s  %-20.20s  ",
                          row.line > 0 ? std::to_string(row.line).c_str() : "",
                          row.samples > 0 ? std::to_string(row.samples).c_str() : "",
                          largestStall(row).first.c_str());
        out += head + row.text + (row.kind == CodeRow::Kind::Kernel ? ":\n" : "\n");
    }
    return out;
}

} // namespace klineage::ui
