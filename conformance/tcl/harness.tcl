# Runs one unit of Redis's test suite against a running server, and reports each test as a line on the standard output:
# the state, the name and the details, separated by tabs. The suite's own files are used unchanged. Only the scheduling and
# reporting of its processes is replaced here, and a failed test is prevented from disturbing later ones.
#
# In the directory of the suite: tclsh harness.tcl UNIT --host HOST --port PORT [options of the suite] [--skiptest NAME ...]

fconfigure stdout -encoding utf-8 -buffering line
set unit [lindex $argv 0]
set argv [concat --durable [lrange $argv 1 end]]

# The suite's main file, up to where it starts its own processes.
set file [open tests/test_helper.tcl]
set source [read $file]
close $file
set end [string first "\nif {\$::client} \{" $source]
if {$end < 0} {error "tests/test_helper.tcl is not the one that is known"}
eval [string range $source 0 $end]
set ::test_server_fd {}

proc report {status name {details {}}} {
    puts [join [list $status [oneline $name] [oneline $details]] "\t"]
}

proc oneline text {string map {\\ \\\\ \n \\n \t \\t \r \\r} $text}

# The suite's messages to its scheduler.
proc send_data_packet {fd status data {elapsed 0}} {
    switch $status {
        err {
            set at [string first " in $::curfile\n" $data]
            if {$at >= 0} {
                report err [string range $data 0 $at-1] [string range $data [string first \n $data $at]+1 end]
            } else {
                report outside $::curfile $data
            }
        }
        ignore {report ignore $data}
        default {report $status $data}
    }
}

# State of the server that a test can leave behind.
proc server_state {} {
    set state {settings {} clients 0}
    catch {
        set control [redis [srv 0 host] [srv 0 port]]
        dict set state settings [$control config get *]
        dict set state clients [$control client id]
        $control close
    }
    return $state
}

# After a failed test: restores the settings, kills the script and the clients of the test, and makes a new connection, because
# the old one may have unread replies.
proc restore_server state {
    catch {
        set control [redis [srv 0 host] [srv 0 port]]
        catch {$control script kill}
        catch {$control function kill}
        catch {$control client unpause}
        catch {$control debug set-active-expire 1}
        set now [$control config get *]
        dict for {name value} [dict get $state settings] {
            if {![dict exists $now $name] || [dict get $now $name] ne $value} {
                catch {$control config set $name $value}
            }
        }
        foreach line [split [$control client list] "\n"] {
            if {[regexp {id=(\d+) } $line -> id] && $id > [dict get $state clients] && $id != [$control client id]} {
                catch {$control client kill id $id}
            }
        }
        $control close
    }
    catch {reconnect}
}

rename test suite_test
proc test {name code {okpattern undefined} {tags {}}} {
    set state [server_state]
    set failed $::num_failed
    set outer [list $::servers $::tags]
    uplevel 1 [list suite_test $name $code $okpattern $tags]
    if {$::num_failed > $failed} {
        lassign $outer ::servers ::tags
        restore_server $state
    }
}

# As in the suite, except that a directive which the server lacks fails only the tests that need it and not the unit, as does an
# error between tests.
proc run_external_server_test {code overrides} {
    set srv [dict create host $::host port $::port config [dict create port $::port]]
    dict set srv client [redis $::host $::port 0 $::tls]
    lappend ::servers $srv
    if {!$::singledb} {r select 9}
    r flushall
    catch {r function flush}
    catch {r script flush}
    catch {r config resetstat}
    set saved {}
    foreach {name value} $overrides {
        dict set saved $name [lindex [r config get $name] 1]
        if {[catch {r config set $name $value} message]} {
            report note $::curfile "CONFIG SET $name $value: $message"
        } elseif {$name eq "appendonly" && $value eq "yes"} {
            waitForBgrewriteaof r
        }
    }
    set outer [list $::servers $::tags]
    set failed [catch {uplevel 2 $code} message options]
    if {$failed && $::cur_test eq ""} {
        report outside $::curfile "$message\n$::errorInfo"
        lassign $outer ::servers ::tags
        catch {reconnect}
    }
    catch {
        dict for {name value} $saved {
            catch {r config set $name $value}
        }
        [srv 0 client] close
    }
    set ::servers [lrange $::servers 0 end-1]
    if {$failed && $::cur_test ne ""} {
        return -options $options $message
    }
}

if {[catch {execute_test_file $unit} message]} {
    report outside $unit "$message\n$::errorInfo"
    exit 1
}
