"""The peer seems to come from another address: NAT."""
from hosts import *


def test_a_node_behind_a_masquerading_router():
    """h2 routes for h1, whose own address nobody else can reach."""
    with Hosts(3) as h:
        h.script('ip link add inner type veth peer name eth1 netns %d'
                 % h.hosts[1].pid, 2)
        h.script('ip addr add 192.168.9.1/24 dev inner && ip link set inner up && '
                 'sysctl -qw net.ipv4.ip_forward=1 && '
                 "nft 'add table ip nat; add chain ip nat post { type nat hook "
                 'postrouting priority 100; }; add rule ip nat post oifname eth0 '
                 "masquerade'", 2)
        h.script('ip link set eth0 down && ip addr add 192.168.9.2/24 dev eth1 && '
                 'ip link set eth1 up && ip route add default via 192.168.9.1', 1)
        program = ('import os\n'
                   'from store import Store\n'
                   's = Store(os.environ["MASTER_ADDR"], '
                   'int(os.environ["MASTER_PORT"]))\n'
                   's.set("from" + os.environ["RANK"], "x")\n'
                   's.get("from0"); s.get("from1"); print("met")\n')
        results = h.finish_all(h.start_all(
            '--no-python', sys.executable, '-c', program, nodes=[0, 1],
            env={'PYTHONPATH': os.path.join(ROOT, 'tests', 'e2e')}))
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['met', 'met'], results
