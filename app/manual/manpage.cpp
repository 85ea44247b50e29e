// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/manual/pages.h"

#include <algorithm>

namespace klineage::manual {

namespace {

/// Text that man prints as it is: a hyphen is one that can be searched for, and no line begins with a request.
std::string plain(const std::string &text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n'))
            out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

std::string bold(const std::string &text)
{
    return "\\fB" + plain(text) + "\\fR";
}

std::string italic(const std::string &text)
{
    return "\\fI" + plain(text) + "\\fR";
}

std::string optionEntry(const Option &option)
{
    std::string out = ".TP\n";
    for (const std::string &name : option.names)
        out += (out.back() == '\n' ? "" : ", ") + bold(name);
    std::string choices;
    for (const std::string &choice : option.choices)
        choices += (choices.empty() ? "" : "|") + choice;
    if (option.names.empty())
        out += italic(option.value);
    else if (!option.value.empty())
        out += ' ' + (choices.empty() ? italic(option.value) : bold(choices));
    out += option.repeats ? " ...\n" : "\n";
    return out + plain(option.description.empty() ? "See above." : option.description) + '\n';
}

std::string entries(const std::vector<Option> &options)
{
    std::string out;
    for (const Option &option : options)
        out += optionEntry(option);
    return out;
}

std::string notes(const std::string &text)
{
    if (text.empty())
        return {};
    if (text.find('\n') == std::string::npos)
        return ".PP\n" + plain(text) + '\n';
    return ".PP\n.nf\n" + plain(text) + (text.back() == '\n' ? "" : "\n") + ".fi\n";
}

std::string synopsis(const Command &command)
{
    std::string out = command.options.empty() ? "" : " [" + italic("options") + ']';
    if (!command.commands.empty())
        out += ' ' + italic("command");
    for (const Option &argument : command.arguments) {
        const std::string name = italic(argument.value) + (argument.repeats ? " ..." : "");
        out += ' ' + (argument.required ? name : '[' + name + ']');
    }
    return out;
}

/// Verbs take the options of the program too, which need not be said again.
std::vector<Option> ownOptions(const Command &verb, const Command &program)
{
    std::vector<Option> own;
    for (const Option &option : verb.options) {
        const bool known = std::any_of(program.options.begin(), program.options.end(),
                                       [&](const Option &common) { return common.names == option.names; });
        if (!known)
            own.push_back(option);
    }
    return own;
}

void addVerbs(std::string &out, const Command &command, const std::string &path, const Command &program)
{
    for (const Command &verb : command.commands) {
        const std::string name = path + verb.name;
        if (verb.commands.empty()) {
            out += ".SS " + bold(name) + synopsis(verb) + '\n' + plain(verb.description) + '\n';
            out += entries(verb.arguments) + entries(ownOptions(verb, program));
            if (verb.notes != program.notes) // which verbs inherit
                out += notes(verb.notes);
        }
        addVerbs(out, verb, name + ' ', program);
    }
}

std::string upper(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return text;
}

} // namespace

std::string manPage(const Command &program)
{
    std::string summary = program.description;
    while (!summary.empty() && summary.back() == '.')
        summary.pop_back();
    std::string out = ".\\\" Made from --help.\n.TH " + plain(upper(program.name)) + " 1 \"\" \"KLineage "
                      + KLINEAGE_VERSION + "\" \"User Commands\"\n";
    out += ".SH NAME\n" + plain(program.name) + " \\- " + plain(summary) + '\n';
    out += ".SH SYNOPSIS\n" + bold(program.name) + synopsis(program) + '\n';
    out += ".SH OPTIONS\n" + entries(program.arguments) + entries(program.options);
    if (!program.commands.empty()) {
        out += ".SH COMMANDS\n";
        addVerbs(out, program, {}, program);
    }
    if (!program.notes.empty())
        out += ".SH NOTES\n" + notes(program.notes);
    out += ".SH \"SEE ALSO\"\n";
    std::string others;
    for (const char *other : {"klineage", "klineage-cli", "klineage-gate"}) {
        if (other != program.name)
            others += (others.empty() ? "" : ", ") + bold(other) + "(1)";
    }
    return out + others + '\n';
}

} // namespace klineage::manual
