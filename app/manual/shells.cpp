// SPDX-License-Identifier: GPL-3.0-or-later
//
// All three shells are given the same: at which verb the cursor is (its path, "gate run"), the words that can follow there, and the
// values of options that have a choice. An option without one, and an argument, is completed as a file, which is what they mostly are.
#include "app/manual/pages.h"

#include <algorithm>

namespace klineage::manual {

namespace {

using Visitor = std::function<void(const Command &, const std::string &path)>;

/// The program (path "") and each verb, from the top.
void visit(const Command &command, const std::string &path, const Visitor &visitor)
{
    visitor(command, path);
    for (const Command &verb : command.commands)
        visit(verb, path.empty() ? verb.name : path + ' ' + verb.name, visitor);
}

/// In single quotes; what a single quote is written as within them differs.
std::string inQuotes(const std::string &text, const std::string &quote = "'\\''")
{
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' ? quote : std::string(1, c);
    return out + '\'';
}

std::string fishQuotes(std::string text)
{
    for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2)
        text.insert(at, 1, '\\');
    return inQuotes(text, "\\'");
}

std::string joined(const std::vector<std::string> &words, const char *between = " ")
{
    std::string out;
    for (const std::string &word : words)
        out += (out.empty() ? "" : between) + word;
    return out;
}

/// What lists show beside a word.
std::string firstSentence(const std::string &text)
{
    const std::string line = text.substr(0, text.find('\n'));
    return line.substr(0, line.find(". "));
}

std::vector<std::string> wordsOf(const Command &command)
{
    std::vector<std::string> words;
    for (const Command &verb : command.commands)
        words.push_back(verb.name);
    for (const Option &argument : command.arguments)
        words.insert(words.end(), argument.choices.begin(), argument.choices.end());
    for (const Option &option : command.options)
        words.insert(words.end(), option.names.begin(), option.names.end());
    return words;
}

bool takesFiles(const Command &command)
{
    return std::any_of(command.arguments.begin(), command.arguments.end(),
                       [](const Option &argument) { return argument.choices.empty(); });
}

std::string functionName(const std::string &program, const std::string &path = {})
{
    std::string name = '_' + program + (path.empty() ? "" : '_' + path);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '-' || c == ' '; }, '_');
    return name;
}

} // namespace

std::string bashCompletion(const Command &program)
{
    std::vector<std::string> paths;
    std::vector<std::string> fileOptions;
    std::string choices;
    std::string words;
    visit(program, {}, [&](const Command &command, const std::string &path) {
        if (!path.empty())
            paths.push_back(inQuotes(' ' + path));
        const std::string start = path.empty() ? "" : ' ' + path;
        for (const Option &option : command.options) {
            for (const std::string &name : option.names) {
                const std::string at = inQuotes(start + ' ' + name);
                if (!option.choices.empty())
                    choices += "    " + at + ") words=" + inQuotes(joined(option.choices)) + " ;;\n";
                else if (!option.value.empty())
                    fileOptions.push_back(at);
            }
        }
        words += "        " + inQuotes(start) + ") words=" + inQuotes(joined(wordsOf(command)))
                 + (takesFiles(command) ? " files=yes" : "") + " ;;\n";
    });
    if (!fileOptions.empty())
        choices += "    " + joined(fileOptions, " | ") + ") return ;;\n";
    const std::string name = functionName(program.name);
    std::string out = "# bash completion for " + program.name + ", made from its --help\n" + name + "()\n{\n";
    out += "    local current=${COMP_WORDS[COMP_CWORD]} before= path= words= files= i\n"
           "    ((COMP_CWORD > 0)) && before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    # --option=value is three words to bash\n"
           "    if [[ $current == = ]]; then\n"
           "        current=\n"
           "    elif [[ $before == = ]]; then\n"
           "        ((COMP_CWORD > 1)) && before=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n";
    if (!paths.empty())
        out += "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
               "        case \"$path ${COMP_WORDS[i]}\" in\n        "
               + joined(paths, " | ")
               + ") path=\"$path ${COMP_WORDS[i]}\" ;;\n"
                 "        esac\n    done\n";
    out += "    COMPREPLY=()\n    case \"$path $before\" in\n" + choices
           + "    *)\n        case \"$path\" in\n" + words + "        esac\n        ;;\n    esac\n";
    out += "    [[ $files == yes && $current != -* ]] && return\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n";
    return out + "complete -o default -F " + name + ' ' + program.name + '\n';
}

std::string zshCompletion(const Command &program)
{
    const auto described = [](const std::string &text, const char *special) {
        std::string out;
        for (const char c : firstSentence(text))
            out +=
                (std::string_view(special).find(c) == std::string_view::npos ? "" : "\\") + std::string(1, c);
        return out;
    };
    std::string out = "#compdef " + program.name + "\n# made from its --help\n";
    visit(program, {}, [&](const Command &command, const std::string &path) {
        std::string specs;
        for (const Option &option : command.options) {
            for (const std::string &name : option.names) {
                std::string spec =
                    (option.repeats ? "*" : "") + name + '[' + described(option.description, "[]\\:") + ']';
                if (!option.value.empty())
                    spec += ':' + described(option.value, "\\:") + ':'
                            + (option.choices.empty() ? "_files" : '(' + joined(option.choices) + ')');
                specs += " \\\n        " + inQuotes(spec);
            }
        }
        out += functionName(program.name, path) + "()\n{\n";
        if (command.commands.empty()) {
            for (const Option &argument : command.arguments)
                specs += " \\\n        "
                         + inQuotes(
                             (argument.repeats ? "*:" : ":") + described(argument.value, "\\:") + ':'
                             + (argument.choices.empty() ? "_files" : '(' + joined(argument.choices) + ')'));
            out += "    _arguments" + specs + "\n}\n";
            return;
        }
        out += "    local context state state_descr line\n    typeset -A opt_args\n    local -a verbs=(";
        std::string cases;
        for (const Command &verb : command.commands) {
            out += "\n        " + inQuotes(verb.name + ':' + described(verb.description, "\\:"));
            const std::string inner = path.empty() ? verb.name : path + ' ' + verb.name;
            cases += "        " + verb.name + ") " + functionName(program.name, inner) + " ;;\n";
        }
        out +=
            ")\n    _arguments -C" + specs
            + " \\\n        '1: :->verb' '*:: :->rest'\n"
              "    case $state in\n    verb) _describe command verbs ;;\n    rest)\n        case $words[1] in\n"
            + cases + "        esac\n        ;;\n    esac\n}\n";
    });
    return out + functionName(program.name) + " \"$@\"\n";
}

std::string fishCompletion(const Command &program)
{
    const std::string at = '_' + functionName(program.name) + "_at";
    std::vector<std::string> paths;
    std::string lines;
    visit(program, {}, [&](const Command &command, const std::string &path) {
        if (!path.empty())
            paths.push_back(fishQuotes(path));
        const std::string start =
            "complete -c " + program.name + " -n " + fishQuotes(at + " '" + path + '\'') + ' ';
        if (!takesFiles(command))
            lines += start + "-f\n";
        for (const Command &verb : command.commands)
            lines += start + "-a " + verb.name + " -d " + fishQuotes(firstSentence(verb.description)) + '\n';
        for (const Option &argument : command.arguments) {
            if (!argument.choices.empty())
                lines += start + "-a " + fishQuotes(joined(argument.choices)) + '\n';
        }
        for (const Option &option : command.options) {
            std::string line = start;
            for (const std::string &name : option.names)
                line += (name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1)) + ' ';
            if (!option.choices.empty())
                line += "-x -a " + fishQuotes(joined(option.choices)) + ' ';
            else if (!option.value.empty())
                line += "-r -F ";
            lines += line + "-d " + fishQuotes(firstSentence(option.description)) + '\n';
        }
    });
    std::string out = "# fish completion for " + program.name + ", made from its --help\n";
    out +=
        "function " + at + "\n    set -l path\n    for word in (commandline -opc)[2..-1]\n"
        + "        if contains -- (string join ' ' -- $path $word) " + (paths.empty() ? "''" : joined(paths))
        + "\n            set -a path $word\n        end\n    end\n    set -l here (string join ' ' -- $path)\n"
          "    test \"$here\" = \"$argv\"\nend\n";
    return out + lines;
}

} // namespace klineage::manual
